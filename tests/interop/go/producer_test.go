package interop

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestSyncSendsGetOffsetsInARow(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "sync", 1)
	p := newProducer(t)
	for i := 0; i < 10; i++ {
		result, err := p.SendSync(context.Background(), message(topic, "T", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if result.Status != primitive.SendOK || result.QueueOffset != int64(i) || result.MessageQueue.BrokerName != "broker-a" {
			t.Fatalf("send %d answered %v", i, result)
		}
	}
}

func TestAsyncSendsAllAnswer(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "async", 4)
	p := newProducer(t)
	var answers sync.WaitGroup
	failures := make(chan error, 100)
	for i := 0; i < 100; i++ {
		answers.Add(1)
		err := p.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
			if err != nil {
				failures <- err
			} else if result.Status != primitive.SendOK {
				failures <- fmt.Errorf("answered %v", result)
			}
			answers.Done()
		}, message(topic, "T", fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
	}
	answers.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s)
	defer c.Shutdown()
	await(t, "100 messages", func() bool { return s.count() >= 100 })
}

func TestOneWaySendsArrive(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "oneway", 2)
	p := newProducer(t)
	for i := 0; i < 20; i++ {
		if err := p.SendOneWay(context.Background(), message(topic, "T", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s)
	defer c.Shutdown()
	await(t, "20 messages", func() bool { return len(s.bodies()) == 20 })
}

func TestABatchArrivesAsSingleMessages(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "batch", 1)
	p := newProducer(t)
	var batch []*primitive.Message
	for i := 0; i < 10; i++ {
		batch = append(batch, message(topic, "T", fmt.Sprint(i)).WithKeys([]string{fmt.Sprintf("key%d", i)}))
	}
	if result, err := p.SendSync(context.Background(), batch...); err != nil || result.Status != primitive.SendOK {
		t.Fatal(result, err)
	}
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s)
	defer c.Shutdown()
	await(t, "10 messages", func() bool { return s.count() >= 10 })
	for _, m := range s.got {
		if m.GetKeys() != "key"+string(m.Body) || strconv.FormatInt(m.QueueOffset, 10) != string(m.Body) {
			t.Errorf("message %q has key %q and offset %d", m.Body, m.GetKeys(), m.QueueOffset)
		}
	}
}

func TestEverythingInAMessageArrives(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "content", 1)
	p := newProducer(t, producer.WithCompressMsgBodyOverHowmuch(4096))
	body := strings.Repeat("the same words again; ", 2000)
	m := primitive.NewMessage(topic, []byte(body)).WithTag("标签").WithKeys([]string{"k1", "k2"})
	m.WithProperty("имя", "значение 🚀")
	result, err := p.SendSync(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s) // the client hashes tags beyond ASCII in a way of its own
	defer c.Shutdown()
	await(t, "the message", func() bool { return s.count() == 1 })
	got := s.got[0]
	if !bytes.Equal(got.Body, []byte(body)) {
		t.Errorf("the body of %d bytes is not the one sent", len(got.Body))
	}
	if got.StoreSize > int32(len(body)/4) {
		t.Errorf("stored with %d bytes: not compressed", got.StoreSize)
	}
	if got.GetTags() != "标签" || got.GetKeys() != "k1 k2" || got.GetProperty("имя") != "значение 🚀" || got.MsgId != result.MsgID {
		t.Errorf("got %v", got)
	}
}

func TestShardsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, "shards", 4)
	p := newProducer(t, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for i := 0; i < 60; i++ {
		m := message(topic, "T", fmt.Sprintf("%d:%d", i%6, i/6)).WithShardingKey(fmt.Sprint("shard", i%6))
		if _, err := p.SendSync(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	s := &sink{}
	c := newPush(t, unique("group"), topic, "*", s, orderly())
	defer c.Shutdown()
	await(t, "60 messages", func() bool { return s.count() >= 60 })
	next := map[string]int{}
	for _, m := range s.got {
		shard, number, _ := strings.Cut(string(m.Body), ":")
		if fmt.Sprint(next[shard]) != number {
			t.Errorf("shard %s: %s came where %d was due", shard, number, next[shard])
		}
		next[shard]++
	}
}
