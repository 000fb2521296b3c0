# A host with an agent and two workers of writ/sdk: cycles through the agent, what the sockets answer to anybody, workers
# that refuse, metrics, and an agent that is killed and started again.
cat >worker.mjs <<'END'
import { readFileSync } from 'node:fs';
const { connectPolicy } = await import(process.env.SDK);
const [socket, name] = process.argv.slice(2);
connectPolicy({
  socket, name,
  onGeneration: (generation) => {
    const text = readFileSync(`${generation.bundle('access')}/policy.yaml`, 'utf8');
    if (text.includes('refuse')) throw new Error(`${name} cannot use it`);
  },
  onEvent: (event) => console.log(JSON.stringify({ ...event, reason: event.reason?.code ?? event.reason, retryInMs: undefined })),
});
END
host_config "bundles: [{ name: access }, { name: dns-edge }]
metrics: { listen: '127.0.0.1:$PORT1' }
workers:
  - name: app
    uses: [access]
    reset: { native: app, timeout: 3s }
  - name: line
    uses: [dns-edge]
    reset: { run: [/bin/true] }"
host() { writ "$@" --config agent.yaml; }
socket=$W/run/agent.sock
native=$W/run/workers/app.sock
greeting='{"writ":1,"version":"0.1.0"}'
policy() { # policy REVISION TEXT
  printf '%s\n' "$2" >access/policy.yaml
  publish "$1" access access
}
up() {
  start agent agent --config agent.yaml
  await_said agent '"state":"run"'
}
stop_worker() { # a worker connects again as often as it comes: each thing that it said, once
  stop "$1"
  sort -u -o "$OUT" "$OUT"
}
metrics() {
  run curl -s "http://127.0.0.1:$PORT1/metrics"
  # Values of Node's own are left out, and those that were measured.
  sed -i -E -e '/^(process|nodejs)_/d' -e 's/^([^#][^ ]*_seconds[^ ]*) .*/\1 VALUE/' "$OUT"
}
is_back() { # the last that one did was to take a policy from the agent that listens now
  sleep 0.5
  tail -n 1 "$RECORDS/one.out" | grep -q '"accepted"'
}
is_connected() { host_quiet status --json | grep -q -E "\"$1\".*\"state\":\"confirmed\""; }
host_quiet() { "$NODE" "$PROGRAM" "$@" --config agent.yaml; }

up
await_said agent '"msg":"cycle ended"'
start_other one env "SDK=$SDK" "$NODE" worker.mjs "$native" one
await_said one '"accepted"'
start_other two env "SDK=$SDK" "$NODE" worker.mjs "$native" two
await_said two '"accepted"'
await is_connected two
host status
host health
host pull
policy second 'users: { ann: [reader] }'
host pull -v
host status
host history
policy refused 'refuse: all'
host pull
host pull
host status
host health
host doctor
policy third 'users: { ann: [editor] }'
host pull
host rollback --reason 'back once'
host resume
host pause --reason 'freeze' --for 1h
host pull
host resume
host pull
host verify
host verify --repair
host diff
host config show
host agent
metrics
get "http://127.0.0.1:$PORT1/nothing"
get -X POST "http://127.0.0.1:$PORT1/metrics"
look run

ask "$socket" 2 <<<"$greeting
{\"type\":\"status\"}"
ask "$socket" 2 <<<"$greeting
{\"type\":\"watch\"}"
ask "$socket" 0 <<<"$greeting
{\"type\":\"history\",\"limit\":2}"
ask "$socket" 0 <<<"$greeting
{\"type\":\"pull\",\"force\":false,\"by\":\"scenario\"}"
ask "$socket" 0 <<<"$greeting
{\"type\":\"resume\",\"by\":\"scenario\"}"
for request in '{"type":"pull"}' '{"type":"history","limit":0}' '{"type":"history","limit":1001}' '{"type":"nonsense"}' \
  '{"type":"rollback","by":"scenario","generation":-1}' '{"type":"rollback","by":"scenario","generation":99}' \
  '{"type":"pause","by":"scenario","reason":""}' '{"type":"verify"}' '{}' '[]' 'nonsense' '' '{"type":"status","more":1}'; do
  ask "$socket" 2 <<<"$greeting
$request"
done
ask "$socket" 0 <<<'{"writ":2,"version":"9"}'
ask "$socket" 0 <<<'{"type":"status"}'
ask "$socket" 0 < <(printf '%s\n' "$greeting"; printf '{"type":"status","x":"%070000d"}\n' 0)
ask "$socket" 0 < <(printf '%s\n\xff\xfe\n' "$greeting")
ask "$native" 2 <<<"$greeting
{\"type\":\"hello\",\"name\":\"raw\",\"pid\":4711}"
for hello in '{"type":"hello","name":"no name","pid":1}' '{"type":"hello","name":"x","pid":0}' '{"type":"ack","id":1,"generation":1}' \
  '{"type":"nonsense"}' 'nonsense'; do
  ask "$native" 0 <<<"$greeting
$hello"
done
ask "$native" 0 < <(printf '%s\n' "$greeting" '{"type":"hello","name":"raw","pid":4711}' '{"type":"ack","id":9,"generation":1}')
ask "$native" 0 < <(printf '%s\n' "$greeting" '{"type":"hello","name":"raw","pid":4711}'; printf '{"type":"%070000d"}\n' 0)
ask "$native" 0 <<<'{"writ":2,"version":"9"}'

look events.jsonl
stop_worker two
await_text events.jsonl '"worker.waiting".*"two","wanted":5'
host status
sed -i 's/id: host-1/id: host-2/' agent.yaml
host reload
sed -i 's/^bundles/bundels/' agent.yaml
host reload
sed -i -e 's/^bundels/bundles/' -e 's/id: host-2/id: host-1/' agent.yaml
host reload
await is_back
policy fourth 'users: { ann: [] }'
host pull
stop agent KILL
host status
host health
policy fifth 'users: { bob: [] }'
up
await is_back
host pull
host history
host status
stop agent
host status
host verify
stop_worker one
look state
# Workers that come back after a reload are seen to be away, or not, as the looks of the agent fall.
run grep -v '"event":"worker' events.jsonl
