package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func orderly() consumer.Option { return consumer.WithConsumerOrder(true) }

func TestPushGetsEverythingOnce(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "push", 4)
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s)
	defer c.Shutdown()
	sent := sendNumbered(t, topic, "m", 100)
	await(t, "100 messages", func() bool { return s.count() >= 100 })
	sameSet(t, sent, s.bodies())
	if s.count() != 100 {
		t.Errorf("%d messages came", s.count())
	}
}

func TestTagsAreFiltered(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "tags", 2)
	s := &sink{}
	c := newPush(t, unique("group"), topic, "TagA || TagB", s)
	defer c.Shutdown()
	p := newProducer(t)
	for i := 0; i < 30; i++ {
		if _, err := p.SendSync(context.Background(), message(topic, []string{"TagA", "TagC", "TagB"}[i%3], fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "20 messages", func() bool { return s.count() >= 20 })
	for _, m := range s.got {
		if m.GetTags() != "TagA" && m.GetTags() != "TagB" {
			t.Errorf("%q came", m.GetTags())
		}
	}
}

// The Go client says no goodbye to the broker: its group must empty when its connections close.
func TestAClosedConsumersQueuesGoToTheOthers(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "close", 4)
	group := unique("group")
	stay, leave := &sink{}, &sink{}
	first := newPush(t, group, topic, "*", stay)
	defer first.Shutdown()
	second := newPush(t, group, topic, "*", leave)
	waitForShare(t, topic, stay, leave.count)
	if err := second.Shutdown(); err != nil {
		t.Fatal(err)
	}
	after := sendNumbered(t, topic, "after", 40)
	await(t, "all messages at the one that stayed", func() bool { return contains(stay.bodies(), after) })
}

func TestAKilledConsumersQueuesGoToTheOthers(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "kill", 4)
	group := unique("group")
	stay := &sink{}
	first := newPush(t, group, topic, "*", stay)
	defer first.Shutdown()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "INTEROP_CONSUME_GROUP="+group, "INTEROP_CONSUME_TOPIC="+topic)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	waitForShare(t, topic, stay, nil)
	_ = other.Process.Kill()
	_ = other.Wait()
	after := sendNumbered(t, topic, "after", 40)
	await(t, "all messages at the one that stayed", func() bool { return contains(stay.bodies(), after) })
}

// waitForShare sends rounds of messages until the first consumer gets just a part of one.
func waitForShare(t *testing.T, topic string, stay *sink, others func() int) {
	t.Helper()
	end := time.Now().Add(deadline)
	for round := 0; time.Now().Before(end); round++ {
		before := stay.count()
		theirs := 0
		if others != nil {
			theirs = others()
		}
		sendNumbered(t, topic, fmt.Sprintf("round%d-", round), 8)
		settled := time.Now().Add(2 * time.Second)
		for time.Now().Before(settled) && stay.count() < before+8 {
			time.Sleep(50 * time.Millisecond)
		}
		got := stay.count() - before
		if got > 0 && got < 8 && (others == nil || others() > theirs) {
			return
		}
	}
	t.Fatal("the two consumers did not come to share the queues")
}

func contains(all, wanted map[string]bool) bool {
	for body := range wanted {
		if !all[body] {
			return false
		}
	}
	return true
}

// consumeUntilKilled is the other process of the test above.
func consumeUntilKilled(group, topic string) {
	s := &sink{}
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers()), consumer.WithGroupName(group))
	if err == nil {
		err = c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, s.take)
	}
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	time.Sleep(3 * time.Minute)
}

func TestBroadcastingGivesEverythingToEach(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "broadcast", 2)
	group := unique("group")
	sinks := []*sink{{}, {}}
	for _, s := range sinks {
		c := newPush(t, group, topic, "*", s, consumer.WithConsumerModel(consumer.BroadCasting))
		defer c.Shutdown()
	}
	sent := sendNumbered(t, topic, "m", 20)
	for _, s := range sinks {
		await(t, "20 messages", func() bool { return s.count() >= 20 })
		sameSet(t, sent, s.bodies())
	}
}

func TestFailuresAreRetried(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "retry", 1)
	times := make(chan int32, 16)
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers()), consumer.WithGroupName(unique("group")),
		consumer.WithInstance(unique("instance")), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithMaxReconsumeTimes(3))
	if err != nil {
		t.Fatal(err)
	}
	take := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		times <- messages[0].ReconsumeTimes
		if messages[0].ReconsumeTimes < 2 {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{}, take); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	sendNumbered(t, topic, "m", 1)
	for want := int32(0); want <= 2; want++ {
		select {
		case got := <-times:
			if got != want {
				t.Fatalf("try %d says it is retry %d", want, got)
			}
		case <-time.After(deadline):
			t.Fatalf("try %d did not come", want)
		}
	}
}

func TestPollAndAck(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "poll", 2)
	group := unique("group")
	sent := sendNumbered(t, topic, "m", 40)
	got := map[string]bool{}
	poll(t, group, topic, got, 40)
	sameSet(t, sent, got)

	// What was acknowledged does not come again.
	more := sendNumbered(t, topic, "more", 10)
	later := map[string]bool{}
	poll(t, group, topic, later, 10)
	sameSet(t, more, later)
}

func poll(t *testing.T, group, topic string, got map[string]bool, count int) {
	t.Helper()
	c, err := rocketmq.NewPullConsumer(consumer.WithNameServer(servers()), consumer.WithGroupName(group), consumer.WithInstance(unique("instance")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	await(t, fmt.Sprint(count, " polled messages"), func() bool {
		request, err := c.Poll(context.Background(), time.Second)
		if err != nil {
			return false
		}
		for _, m := range request.GetMsgList() {
			got[string(m.Body)] = true
		}
		c.ACK(context.Background(), request, consumer.ConsumeSuccess)
		return len(got) >= count
	})
}

func TestPullFromAnOffset(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "pullfrom", 1)
	sendNumbered(t, topic, "m", 20)
	c, err := rocketmq.NewPullConsumer(consumer.WithNameServer(servers()), consumer.WithGroupName(unique("group")), consumer.WithInstance(unique("instance")))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown()
	queue := &primitive.MessageQueue{Topic: topic, BrokerName: "broker-a", QueueId: 0}
	result, err := c.PullFrom(context.Background(), queue, 5, 10)
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != primitive.PullFound || result.NextBeginOffset != 15 || result.MinOffset != 0 || result.MaxOffset != 20 {
		t.Fatalf("pull answered %v", result)
	}
	for i, m := range result.GetMessageExts() {
		if string(m.Body) != fmt.Sprint("m", 5+i) {
			t.Errorf("message %d is %q", i, m.Body)
		}
	}
	offset, err := c.OffsetForTimestamp(queue, time.Now().Add(-time.Hour).UnixMilli())
	if err != nil || offset != 0 {
		t.Errorf("the offset of an hour ago is %d, %v", offset, err)
	}
}

func TestAConsumerGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "restart", 2)
	group := unique("group")
	first := sendNumbered(t, topic, "first", 20)
	before := &sink{}
	c := newPush(t, group, topic, "*", before)
	await(t, "the first messages", func() bool { return before.count() >= 20 })
	_ = c.Shutdown()
	second := sendNumbered(t, topic, "second", 20)
	after := &sink{}
	c = newPush(t, group, topic, "*", after)
	defer c.Shutdown()
	await(t, "the second messages", func() bool { return contains(after.bodies(), second) })
	// What the first consumer had in hand when it stopped may come again, but not all.
	again := 0
	for body := range after.bodies() {
		if first[body] {
			again++
		}
	}
	if again > 10 {
		t.Errorf("%d of 20 messages came again", again)
	}
}
