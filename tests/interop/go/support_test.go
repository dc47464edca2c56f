// Package interop drives the official Go client against the name server in NAMESRV_ADDR and the broker in BROKER_ADDR.
package interop

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// deadline is how long a condition may take; a machine that does much else needs more.
var deadline = seconds("INTEROP_SECONDS", 60)

var (
	namesrv = os.Getenv("NAMESRV_ADDR")
	broker  = os.Getenv("BROKER_ADDR")
	run     = fmt.Sprintf("%x", time.Now().UnixMilli()%100000000)
	counter atomic.Int64
)

func TestMain(m *testing.M) {
	if namesrv == "" || broker == "" {
		fmt.Fprintln(os.Stderr, "set NAMESRV_ADDR and BROKER_ADDR")
		os.Exit(1)
	}
	rlog.SetLogLevel("fatal")
	if group := os.Getenv("INTEROP_CONSUME_GROUP"); group != "" {
		consumeUntilKilled(group, os.Getenv("INTEROP_CONSUME_TOPIC"))
		return
	}
	os.Exit(m.Run())
}

func seconds(name string, otherwise int) time.Duration {
	if set, err := strconv.Atoi(os.Getenv(name)); err == nil {
		otherwise = set
	}
	return time.Duration(otherwise) * time.Second
}

func unique(what string) string {
	return fmt.Sprintf("go_%s_%s_%d", what, run, counter.Add(1))
}

func servers() primitive.NamesrvAddr { return primitive.NamesrvAddr{namesrv} }

func newTopic(t *testing.T, what string, queues int) string {
	t.Helper()
	topic := unique(what)
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{namesrv})))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	err = a.CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(broker),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	if err != nil {
		t.Fatal("create topic: ", err)
	}
	await(t, "the route of "+topic, func() bool {
		found, err := a.FetchPublishMessageQueues(context.Background(), topic)
		return err == nil && len(found) == queues
	})
	return topic
}

func newProducer(t *testing.T, more ...producer.Option) rocketmq.Producer {
	t.Helper()
	options := append([]producer.Option{producer.WithNameServer(servers()), producer.WithGroupName(unique("producer")),
		producer.WithInstanceName(unique("instance")), producer.WithRetry(2), producer.WithSendMsgTimeout(10 * time.Second)}, more...)
	p, err := rocketmq.NewProducer(options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Shutdown() })
	return p
}

func message(topic, tag, body string) *primitive.Message {
	return primitive.NewMessage(topic, []byte(body)).WithTag(tag)
}

func sendNumbered(t *testing.T, topic, prefix string, count int) map[string]bool {
	t.Helper()
	p := newProducer(t)
	sent := map[string]bool{}
	for i := 0; i < count; i++ {
		body := fmt.Sprintf("%s%d", prefix, i)
		result, err := p.SendSync(context.Background(), message(topic, "T", body))
		if err != nil || result.Status != primitive.SendOK {
			t.Fatalf("send %d: %v %v", i, result, err)
		}
		sent[body] = true
	}
	return sent
}

// sink remembers what a push consumer got.
type sink struct {
	sync.Mutex
	got []*primitive.MessageExt
}

func (s *sink) take(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	s.Lock()
	defer s.Unlock()
	s.got = append(s.got, messages...)
	return consumer.ConsumeSuccess, nil
}

func (s *sink) count() int {
	s.Lock()
	defer s.Unlock()
	return len(s.got)
}

func (s *sink) bodies() map[string]bool {
	s.Lock()
	defer s.Unlock()
	all := map[string]bool{}
	for _, m := range s.got {
		all[string(m.Body)] = true
	}
	return all
}

func newPush(t *testing.T, group, topic, tags string, s *sink, more ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	options := append([]consumer.Option{consumer.WithNameServer(servers()), consumer.WithGroupName(group),
		consumer.WithInstance(unique("instance")), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}, more...)
	c, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}, s.take); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	end := time.Now().Add(deadline)
	for !done() {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", deadline, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func sameSet(t *testing.T, want, got map[string]bool) {
	t.Helper()
	for body := range want {
		if !got[body] {
			t.Errorf("%q did not come", body)
		}
	}
	for body := range got {
		if !want[body] {
			t.Errorf("%q came and was not sent", body)
		}
	}
}
