"""Drives the C++ client (librocketmq.so of the wheel "rocketmq") against NAMESRV_ADDR; ends with `N passed, N failed`."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import traceback

NAMESRV = os.environ.get("NAMESRV_ADDR") or sys.exit("set NAMESRV_ADDR")
# A machine that does much else needs more.
DEADLINE = int(os.environ.get("INTEROP_SECONDS", "60"))
# The library logs into ~/logs.
os.environ.setdefault("INTEROP_HOME", tempfile.mkdtemp(prefix="mq-cpp."))
os.environ["HOME"] = os.environ["INTEROP_HOME"]

from rocketmq.client import Message, Producer, PullConsumer, PushConsumer, SendStatus  # noqa: E402
from rocketmq.ffi import MessageModel  # noqa: E402

RUN = format(int(time.time()) % 10**8, "x") + format(os.getpid(), "x")
_next = iter(range(1, 10**6))


def unique(what):
    return f"cpp_{what}_{RUN}_{next(_next)}"


def message(topic, body, tags="T", keys=None):
    made = Message(topic)
    made.set_body(body)
    made.set_tags(tags)
    if keys:
        made.set_keys(keys)
    return made


def producer():
    made = Producer(unique("producer"), timeout=10000)
    made.set_namesrv_addr(NAMESRV)
    made.start()
    return made


class Sink:
    """What a push consumer got: (body, tags, keys, queue, offset, retries)."""

    def __init__(self):
        self.got = []
        self.fail = lambda message: False

    def take(self, received):
        self.got.append((received.body, received.tags, received.keys, received.queue_id, received.queue_offset, received.reconsume_times))
        if self.fail(received):
            raise ValueError("asked to fail")

    def bodies(self):
        return {row[0].decode() for row in self.got}


def push(group, topic, expression="*", instance=None, **kind):
    sink = Sink()
    consumer = PushConsumer(group, **kind)
    consumer.set_namesrv_addr(NAMESRV)
    consumer.set_instance_name(instance or unique("instance"))
    consumer.set_thread_count(2)
    consumer.subscribe(topic, sink.take, expression)
    consumer.start()
    return consumer, sink


def wait(what, done, seen=lambda: ""):
    end = time.monotonic() + DEADLINE
    while not done():
        if time.monotonic() > end:
            raise AssertionError(f"waited {DEADLINE} s for {what}; seen: {seen()}")
        time.sleep(0.05)


def equal(want, got, what):
    if want != got:
        raise AssertionError(f"{what}: wanted {want!r}, got {got!r}")


def send_numbered(topic, prefix, count):
    sender = producer()
    for i in range(count):
        equal(SendStatus.OK, sender.send_sync(message(topic, f"{prefix}{i}")).status, "status")
    sender.shutdown()
    return {f"{prefix}{i}" for i in range(count)}


def test_sync_and_push():
    topic = unique("sync")
    sent = send_numbered(topic, "m", 40)
    consumer, sink = push(unique("group"), topic)
    wait("40 messages", lambda: len(sink.got) >= 40, lambda: len(sink.got))
    equal(sent, sink.bodies(), "bodies")
    equal(40, len(sink.got), "count")
    consumer.shutdown()


def test_a_message_arrives_whole():
    topic = unique("content")
    sender = producer()
    made = message(topic, "тело 消息", "标签", "k1 k2")
    made.set_property("name", "значение")
    result = sender.send_sync(made)
    seen = []
    consumer = PushConsumer(unique("group"))
    consumer.set_namesrv_addr(NAMESRV)
    consumer.set_instance_name(unique("instance"))
    consumer.subscribe(topic, lambda m: seen.append((m.body, m.tags, m.keys, m["name"], m.id, m.topic)))
    consumer.start()
    wait("the message", lambda: seen)
    equal(("тело 消息".encode(), "标签".encode(), b"k1 k2", "значение".encode(), result.msg_id, topic), seen[0], "message")
    consumer.shutdown()
    sender.shutdown()


def test_oneway():
    topic = unique("oneway")
    send_numbered(topic, "first", 1)
    sender = producer()
    for i in range(20):
        sender.send_oneway(message(topic, f"m{i}"))
    consumer, sink = push(unique("group"), topic)
    wait("21 messages", lambda: len(sink.bodies()) == 21, lambda: len(sink.got))
    consumer.shutdown()
    sender.shutdown()


def test_orderly():
    topic = unique("orderly")
    sender = producer()
    for i in range(40):
        equal(SendStatus.OK, sender.send_orderly(message(topic, f"{i % 5}:{i // 5}"), i % 5).status, "status")
    consumer, sink = push(unique("group"), topic, orderly=True)
    wait("40 messages", lambda: len(sink.got) >= 40, lambda: len(sink.got))
    order = {}
    for body, *_ in sink.got:
        shard, number = body.decode().split(":")
        equal(order.get(shard, 0), int(number), f"next of shard {shard}")
        order[shard] = int(number) + 1
    consumer.shutdown()
    sender.shutdown()


def test_batch():
    """This client does not mark its batch as one in the request, so a broker keeps it as a single message; Java's does, too."""
    topic = unique("batch")
    send_numbered(topic, "first", 1)
    sender = producer()
    equal(SendStatus.OK, sender.send_batch([message(topic, f"m{i}", keys=f"key{i}") for i in range(10)]).status, "status")
    sizes = {}
    consumer = PushConsumer(unique("group"))
    consumer.set_namesrv_addr(NAMESRV)
    consumer.subscribe(topic, lambda m: sizes.__setitem__((m.queue_id, m.queue_offset), m.store_size))
    consumer.start()
    wait("two messages", lambda: len(sizes) == 2, lambda: sizes)
    if max(sizes.values()) < 10 * len("m0 key0 and a unique key of 32 characters"):
        raise AssertionError(f"ten messages in {sizes} bytes")
    consumer.shutdown()
    sender.shutdown()


def test_delay_level():
    topic = unique("delay")
    send_numbered(topic, "now", 1)
    consumer, sink = push(unique("group"), topic)
    wait("the first", lambda: len(sink.got) == 1)
    sender = producer()
    late = message(topic, "later")
    late.set_delay_time_level(2)
    start = time.time()
    sender.send_sync(late)
    wait("the delayed one", lambda: len(sink.got) == 2)
    waited = time.time() - start
    if not 1.9 <= waited < 10:
        raise AssertionError(f"two seconds of delay took {waited:.2f} s")
    consumer.shutdown()
    sender.shutdown()


def test_tags():
    topic = unique("tags")
    sender = producer()
    for i in range(30):
        sender.send_sync(message(topic, f"m{i}", ("TagA", "TagB", "TagC")[i % 3]))
    consumer, sink = push(unique("group"), topic, "TagA || TagB")
    wait("20 messages", lambda: len(sink.got) >= 20, lambda: len(sink.got))
    equal({b"TagA", b"TagB"}, {row[1] for row in sink.got}, "tags")
    consumer.shutdown()
    sender.shutdown()


def test_failure_is_retried():
    topic = unique("retry")
    send_numbered(topic, "m", 1)
    consumer = PushConsumer(unique("group"))
    consumer.set_namesrv_addr(NAMESRV)
    consumer.set_instance_name(unique("instance"))
    tries = []

    def take(received):
        tries.append(received.reconsume_times)
        if len(tries) < 2:
            raise ValueError("asked to fail")

    consumer.subscribe(topic, take)
    consumer.start()
    wait("two tries", lambda: len(tries) == 2, lambda: tries)
    equal([0, 1], tries, "retries")
    consumer.shutdown()


def test_a_killed_consumers_queues_go_to_the_other():
    topic, group = unique("kill"), unique("group")
    send_numbered(topic, "first", 4)
    consumer, sink = push(group, topic)
    wait("the first", lambda: len(sink.bodies()) == 4)
    other = subprocess.Popen([sys.executable, __file__, "consume", group, topic])
    try:
        end = time.monotonic() + DEADLINE
        for turn in range(100):
            before = len(sink.got)
            send_numbered(topic, f"round{turn}-", 8)
            time.sleep(1)
            if 0 < len(sink.got) - before < 8:
                break
            if time.monotonic() > end:
                raise AssertionError("the two consumers did not come to share the queues")
    finally:
        other.kill()
        other.wait()
    after = send_numbered(topic, "after", 20)
    wait("all messages", lambda: after <= sink.bodies(), lambda: after - sink.bodies())
    consumer.shutdown()


def test_broadcasting():
    topic, group = unique("broadcast"), unique("group")
    send_numbered(topic, "first", 1)
    both = [push(group, topic, message_model=MessageModel.BROADCASTING) for _ in range(2)]
    # A new broadcasting consumer starts at the end: send until each has got something, then count.
    def warm():
        send_numbered(topic, "warm", 4)
        time.sleep(0.5)
        return all(len({row[3] for row in sink.got}) == 4 for _, sink in both)
    wait("both to listen to all queues", warm)
    sent = send_numbered(topic, "m", 20)
    for _, sink in both:
        wait("20 messages", lambda: sent <= sink.bodies(), lambda: sent - sink.bodies())
    for consumer, _ in both:
        consumer.shutdown()


def test_restart():
    topic, group = unique("restart"), unique("group")
    send_numbered(topic, "first", 12)
    consumer, sink = push(group, topic)
    wait("the first", lambda: len(sink.got) == 12)
    consumer.shutdown()
    second = send_numbered(topic, "second", 12)
    consumer, sink = push(group, topic)
    wait("the second", lambda: second <= sink.bodies(), lambda: second - sink.bodies())
    # What the first consumer had in hand when it stopped may come again, but not all.
    if len(sink.bodies() - second) > 6:
        raise AssertionError(f"came again: {sink.bodies() - second}")
    consumer.shutdown()


def test_pull():
    topic = unique("pull")
    sent = send_numbered(topic, "m", 40)
    consumer = PullConsumer(unique("group"))
    consumer.set_namesrv_addr(NAMESRV)
    consumer.start()
    got = [m.body.decode() for m in consumer.pull(topic)]
    equal(sent, set(got), "bodies")
    equal(40, len(got), "count")
    more = send_numbered(topic, "more", 8)
    equal(more, {m.body.decode() for m in consumer.pull(topic)}, "bodies of the second pull")
    consumer.shutdown()


def consume_until_killed(group, topic):
    consumer, _ = push(group, topic, instance=f"other{os.getpid()}")
    time.sleep(180)
    consumer.shutdown()


def run_one(name):
    try:
        globals()[name]()
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        code = 1
    sys.stdout.flush()
    # Not by the ordinary way out: the library's own threads may still run.
    os._exit(code)


def main():
    """Each test is a process of its own (the library crashes when clients are made in two threads at once), four at a time."""
    names = sys.argv[1:] or [name for name in globals() if name.startswith("test_")]
    failed = []
    gate = threading.Semaphore(4)

    def run(name):
        with gate:
            start = time.monotonic()
            try:
                done = subprocess.run([sys.executable, __file__, "one", name], capture_output=True, text=True, timeout=3 * DEADLINE)
                good, output = done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
            except subprocess.TimeoutExpired as late:
                good, output = False, str(late)
            spent = f"{name} ({time.monotonic() - start:.1f} s)"
            print(f"ok      {spent}" if good else f"FAILED  {spent}: {output}", flush=True)
            if not good:
                failed.append(name)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or not names else 0)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "consume":
        consume_until_killed(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3 and sys.argv[1] == "one":
        run_one(sys.argv[2])
    else:
        main()
