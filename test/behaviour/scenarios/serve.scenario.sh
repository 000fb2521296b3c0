# A repository over HTTP by `writ serve`, a host that follows it and mirrors that fail, and a host that waits.
mkdir online && cp keys/snapshot.key keys/timestamp.key keys/root.json online/
start server serve --repository repo --listen "127.0.0.1:$PORT1" --keys online
await curl -s "http://127.0.0.1:$PORT1/"
url=http://127.0.0.1:$PORT1
get "$url/"
get "$url/metadata/timestamp.json"
get "$url/metadata/1.root.json"
get -I "$url/metadata/1.root.json"
get "$url/metadata/2.root.json"
get "$url/metadata/../../keys/targets.key"
get "$url/metadata/%2e%2e/%2e%2e/keys/targets.key"
get -X POST "$url/metadata/timestamp.json"
get -r 0-9 "$url/metadata/1.root.json"
get -r 99999- "$url/metadata/1.root.json"
get "$url/healthz"
get "$url/health"
get "$url/metrics-nothing"
host_config "bundles: [{ name: access }]"
sed -i "s,^repository:.*,repository: [\"http://127.0.0.1:$PORT2/\"\, \"$url/\"]," agent.yaml
host() { writ "$@" --config agent.yaml; }
host pull -v
host status
host doctor
printf 'users: {}\n' >access/policy.yaml
publish second access access
host pull
sed -i "s,^repository:.*,repository: http://127.0.0.1:$PORT2/," agent.yaml
host pull
host status
host health
host pull --wait 1s
writ inspect "$url" --root keys/root.json
writ inspect "http://127.0.0.1:$PORT2/" --root keys/root.json
writ serve --repository repo --listen "127.0.0.1:$PORT1"
writ serve --repository nowhere --listen "127.0.0.1:$PORT3"
writ serve --repository repo --listen nonsense
writ serve --repository repo --listen "127.0.0.1:$PORT3" --keys people
stop server
