# The walk of README.md, its commands in its order; ports are those of the scenario, and where there is no kresd the lines
# with it are left out. Whoever changes the walk there changes it here.
# form: human
rm -rf repo keys access dns-edge
bundles=$CHECKOUT/bundles examples=$CHECKOUT/docs/examples/dns-edge
mkdir -p "$W/kresd/control"
writ init --repository "$W/repo" --keys "$W/keys" --no-passphrase
cp -r "$bundles/dns-edge" "$W/source"
writ publish "$W/source" --repository "$W/repo" --keys "$W/keys" --bundle dns-edge --revision first
start server serve --repository "$W/repo" --listen "127.0.0.1:$PORT1"
await curl -s "http://127.0.0.1:$PORT1/"
cp "$examples"/*.conf "$W"
kresd=$(command -v kresd) && command -v dig || kresd=
if [ -n "$kresd" ]; then
  start_other kresd env "WRIT_POLICY=$W/state/policy" "DNS_PORT=$PORT2" kresd -n -c "$W/kresd.conf" "$W/kresd"
  await test -S "$W/kresd/control/1"
fi
cat >"$W/agent.yaml" <<END
repository: http://127.0.0.1:$PORT1/
root: $W/repo/metadata/1.root.json
state: $W/state
run: $W/run
host: { id: walk }
bundles:
  - name: dns-edge
    checks:
      - name: zone parses
        run: [${kresd:-/bin/true}, -n, -c, $W/rpz-check.conf, -c, "-", "{scratch}"]
        binds: [$W/rpz-check.conf]
END
if [ -n "$kresd" ]; then
  cat >>"$W/agent.yaml" <<END
workers:
  - name: resolver
    uses: [dns-edge]
    reset: { kresd: "$W/kresd/control/*", command: "policy_reset()", expect: "0" }
END
fi
host() { writ "$@" --config "$W/agent.yaml"; }
answer() {
  if [ -n "$kresd" ]; then run dig +short @127.0.0.1 -p "$PORT2" app.example.com; fi
}
host pull
answer
sed -i 's/192.0.2.1/192.0.2.2/' "$W/source/block.rpz"
writ publish "$W/source" --repository "$W/repo" --keys "$W/keys" --bundle dns-edge --revision second
host pull
answer
sed -i 's/192.0.2.2/192.0.2.999/' "$W/source/block.rpz"
writ publish "$W/source" --repository "$W/repo" --keys "$W/keys" --bundle dns-edge --revision broken
host pull
answer
host status
host history
host rollback
answer
host status
start agent agent --config "$W/agent.yaml"
await_said agent '"state":"run"'
host pull
host health
host verify
host doctor
host reload
host diff
host pause --for 2h --reason walk
host resume
host status
writ inspect "$W/repo"
writ repo status --repository "$W/repo"
stop agent INT
stop server
look repo
look state
