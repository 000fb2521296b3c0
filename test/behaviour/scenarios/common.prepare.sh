# The keys of every role, and a repository with two bundles: the initial state of every scenario.
q() { "$@"; test "$(cat "$record.exit")" = 0 || { cat "$record.stderr" >&2; exit 8; }; }
FORM=human
q writ init --repository repo --keys keys --no-passphrase --name anna --name ben --name carol
for name in dora team targets-2 timestamp-2; do
  q writ key new "people/$name.key" --name "$name" --no-passphrase
done
cp -r "$CHECKOUT/bundles/access" access
cp -r "$CHECKOUT/bundles/dns-edge" dns-edge
q publish first access access
q publish first dns-edge dns-edge
