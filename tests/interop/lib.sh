# Shell functions (bash) to start a name server and a broker from nothing and to stop them again.
# Sourced by the scripts beside it. Everything lives in one temporary folder and is gone when the script ends.
#
#   start_namesrv rust|java   exports NAMESRV_ADDR
#   start_broker  rust|java   exports BROKER_ADDR; registers at NAMESRV_ADDR
#   start_servers rust|java   both
#   stop_servers              ends what was started, by process id
#
# MQ_BIN_DIR   folder of mqnamesrv and mqbroker (default: release, in CARGO_TARGET_DIR or the target folder of the checkout)
# JAVA_OPTS_BROKER, JAVA_OPTS_NAMESRV   other heaps for the Java servers

INTEROP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CHECKOUT=$(cd "$INTEROP/../.." && pwd)
MQ_BIN_DIR=${MQ_BIN_DIR:-${CARGO_TARGET_DIR:-$CHECKOUT/target}/release}
BOOT_SECONDS=${BOOT_SECONDS:-180}
STARTED_PIDS=()
JAVA_PIDS=()

# What JDK 17 must open for RocketMQ's Java servers.
JAVA_OPENS=(
  --add-exports=java.base/sun.nio.ch=ALL-UNNAMED --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED
  --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED
  --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED
  --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.util.concurrent=ALL-UNNAMED
)

say() { printf '%s %s\n' "$(date +%H:%M:%S)" "$*" >&2; }
die() { say "FAILED: $*"; exit 1; }

# A folder for this run; removed at the end unless KEEP is set.
run_dir() {
  if [ -z "${RUN_DIR:-}" ]; then
    RUN_DIR=$(mktemp -d -t mq-interop.XXXXXX) || die "no temporary folder"
    trap interop_exit EXIT
    trap 'exit 130' INT TERM
  fi
}

interop_exit() {
  local status=$?
  trap - EXIT
  stop_servers
  if [ -n "${LOGS:-}" ]; then
    mkdir -p "$LOGS" && cp "$RUN_DIR"/*.log "$LOGS" 2>/dev/null
  fi
  if [ -n "${KEEP:-}" ]; then
    say "kept $RUN_DIR"
  else
    rm -rf "$RUN_DIR"
  fi
  exit "$status"
}

# The first of COUNT free ports in a row that the broker can have: it also takes P+1 and P-2.
free_port() {
  python3 - "${1:-1}" <<'PY'
import random, socket, sys
count = int(sys.argv[1])
for _ in range(500):
    base = random.randrange(21000, 21980, 4)
    held = []
    try:
        for port in range(base, base + count):
            s = socket.socket()
            held.append(s)
            s.bind(("0.0.0.0", port))
        print(base)
        break
    except OSError:
        continue
    finally:
        for s in held:
            s.close()
else:
    sys.exit("no free port")
PY
}

# wait_line FILE PATTERN PID WHAT: until the line is there; fails when the process ends or time is up.
wait_line() {
  local end=$((SECONDS + BOOT_SECONDS))
  until grep -q "$2" "$1" 2>/dev/null; do
    if ! kill -0 "$3" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then
      tail -n 40 "$1" >&2
      die "$4 did not get ready"
    fi
    sleep 0.05
  done
}

# The jars of the Java servers, fetched once per checkout.
peer_jars() {
  PEER_LIB=$INTEROP/java/peer/target/lib
  if [ ! -e "$PEER_LIB/.complete" ]; then
    say "collecting the Java servers' jars"
    (cd "$INTEROP/java/peer" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$PEER_LIB" -DincludeScope=runtime) \
      || die "mvn could not collect the Java servers"
    touch "$PEER_LIB/.complete"
  fi
}

java_server() {
  local name=$1
  shift
  mkdir -p "$RUN_DIR/$name-home"
  ROCKETMQ_HOME=$RUN_DIR/$name-home java "${JAVA_OPENS[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto \
    -Duser.home="$RUN_DIR/$name-home" -Djava.net.preferIPv4Stack=true \
    -Drmq.logback.configurationFile="$INTEROP/java/peer/logback.xml" \
    -cp "$PEER_LIB/*" "$@" > "$RUN_DIR/$name.log" 2>&1 &
  SERVER_PID=$!
  disown "$SERVER_PID"
  STARTED_PIDS+=("$SERVER_PID")
  JAVA_PIDS+=("$SERVER_PID")
}

rust_server() {
  local name=$1
  shift
  [ -x "$MQ_BIN_DIR/$1" ] || die "$MQ_BIN_DIR/$1 is not there; build it, or set MQ_BIN_DIR"
  mkdir -p "$RUN_DIR/$name-home"
  # HOME too: nothing that a server does by default may end up in the user's own folder.
  HOME=$RUN_DIR/$name-home ROCKETMQ_HOME=$RUN_DIR/$name-home "$MQ_BIN_DIR/$1" "${@:2}" > "$RUN_DIR/$name.log" 2>&1 &
  SERVER_PID=$!
  disown "$SERVER_PID"
  STARTED_PIDS+=("$SERVER_PID")
}

# start_namesrv rust|java [NAME]
start_namesrv() {
  run_dir
  local name=${2:-namesrv-$1} port
  port=$(free_port 1) || die "no free port"
  printf 'listenPort=%s\nkvConfigPath=%s\nconfigStorePath=%s\n%s\n' "$port" "$RUN_DIR/$name-kvConfig.json" \
    "$RUN_DIR/$name-stored.properties" "${NAMESRV_EXTRA:-}" > "$RUN_DIR/$name.conf"
  case $1 in
    java)
      peer_jars
      # shellcheck disable=SC2086
      java_server "$name" ${JAVA_OPTS_NAMESRV:--Xms64m -Xmx192m} org.apache.rocketmq.namesrv.NamesrvStartup -c "$RUN_DIR/$name.conf" ;;
    rust) rust_server "$name" mqnamesrv -c "$RUN_DIR/$name.conf" ;;
    *) die "a server is rust or java, not '$1'" ;;
  esac
  NAMESRV_PID=$SERVER_PID
  wait_line "$RUN_DIR/$name.log" 'boot success' "$NAMESRV_PID" "the $1 name server"
  export NAMESRV_ADDR=127.0.0.1:$port
}

# start_broker rust|java [NAME]; BROKER_EXTRA may hold further lines of broker.conf, MQ_BROKER_NAME another name.
start_broker() {
  run_dir
  local name=${2:-broker-$1} port
  port=$(free_port 4) || die "no free port"
  port=$((port + 2))
  cat > "$RUN_DIR/$name.conf" <<EOF
brokerClusterName=${MQ_CLUSTER_NAME:-DefaultCluster}
brokerName=${MQ_BROKER_NAME:-broker-a}
brokerId=0
listenPort=$port
brokerIP1=127.0.0.1
namesrvAddr=$NAMESRV_ADDR
storePathRootDir=$RUN_DIR/$name-store
storePathCommitLog=$RUN_DIR/$name-store/commitlog
autoCreateTopicEnable=true
mappedFileSizeCommitLog=104857600
diskMaxUsedSpaceRatio=99
waitTimeMillsInSendQueue=5000
waitTimeMillsInPullQueue=10000
messageDelayLevel=${MQ_DELAY_LEVELS:-1s 2s 1s 2s 3s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s}
${BROKER_EXTRA:-}
EOF
  case $1 in
    java)
      peer_jars
      # shellcheck disable=SC2086
      java_server "$name" ${JAVA_OPTS_BROKER:--Xms256m -Xmx640m -XX:MaxDirectMemorySize=384m} \
        org.apache.rocketmq.broker.BrokerStartup -c "$RUN_DIR/$name.conf" -n "$NAMESRV_ADDR" ;;
    rust) rust_server "$name" mqbroker -c "$RUN_DIR/$name.conf" -n "$NAMESRV_ADDR" ;;
    *) die "a server is rust or java, not '$1'" ;;
  esac
  BROKER_PID=$SERVER_PID
  wait_line "$RUN_DIR/$name.log" 'boot success' "$BROKER_PID" "the $1 broker"
  export BROKER_ADDR=127.0.0.1:$port
  wait_route "$BROKER_ADDR" || die "the name server does not know the $1 broker"
}

# wait_route BROKER: until the name server's route of TBW102 names the broker. A broker says it is up a moment before that.
wait_route() {
  python3 - "$NAMESRV_ADDR" "$1" <<'PY'
import json, socket, struct, sys, time
host, port = sys.argv[1].rsplit(":", 1)
header = json.dumps({"code": 105, "language": "OTHER", "version": 493, "opaque": 1, "flag": 0, "extFields": {"topic": "TBW102"}}).encode()
end = time.monotonic() + 40
while time.monotonic() < end:
    try:
        with socket.create_connection((host, int(port)), 3) as s, s.makefile("rb") as answers:
            s.sendall(struct.pack(">II", 4 + len(header), len(header)) + header)
            (size,) = struct.unpack(">I", answers.read(4))
            if sys.argv[2].encode() in answers.read(size):
                sys.exit(0)
    except (OSError, struct.error):
        pass
    time.sleep(0.1)
sys.exit(1)
PY
}

start_servers() {
  start_namesrv "$1"
  start_broker "$1"
  say "$1 servers are up: name server $NAMESRV_ADDR, broker $BROKER_ADDR"
}

# Ours orderly, the last started first; what has not ended in 15 s is killed. The Java broker takes that long by itself,
# and its store is thrown away: it is killed at once.
stop_servers() {
  local i pid end
  for ((i = ${#STARTED_PIDS[@]} - 1; i >= 0; i--)); do
    case " ${JAVA_PIDS[*]} " in
      *" ${STARTED_PIDS[i]} "*) kill -9 "${STARTED_PIDS[i]}" 2>/dev/null ;;
      *) kill "${STARTED_PIDS[i]}" 2>/dev/null ;;
    esac
  done
  end=$((SECONDS + 15))
  for pid in "${STARTED_PIDS[@]}"; do
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
    kill -9 "$pid" 2>/dev/null
  done
  STARTED_PIDS=()
}
