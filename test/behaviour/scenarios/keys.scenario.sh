# Making repositories and keys: every way of asking for them, and what is refused.
secret=(--passphrase-file secret)
printf 'correct horse battery staple\n' >secret
printf 'another long passphrase\n' >secret-2
printf 'short\n' >secret-3
writ init --repository new --keys new-keys "${secret[@]}" --name anna --name ben --name carol
look new
look new-keys
writ init --repository new --keys new-keys "${secret[@]}"
writ init --repository other --keys new-keys "${secret[@]}"
writ init --repository other --keys other-keys "${secret[@]}" --root-keys 1 --root-threshold 1
writ init --repository other --keys other-keys "${secret[@]}" --root-keys 1 --root-threshold 1 --yes
writ init --repository third --keys third-keys "${secret[@]}" --root-keys 2 --root-threshold 3
writ init --repository third --keys third-keys --passphrase-file secret-3
writ init --repository third --keys third-keys
writ init --repository third --keys third-keys --no-passphrase --root-life 90d --targets-life 60d \
  --snapshot-life 20d --timestamp-life 2d --root-keys 5 --root-threshold 3
writ init --repository fourth --keys fourth-keys --no-passphrase --root-life 1x
writ publish access --repository new --keys new-keys --bundle access --revision one "${secret[@]}"
writ publish access --repository new --keys new-keys --bundle access --revision two --passphrase-file secret-2
writ publish access --repository new --keys new-keys --bundle access --revision two --no-input
writ refresh --repository new --keys new-keys --passphrase-command 'cat secret'
writ refresh --repository new --keys new-keys --passphrase-command 'exit 3'
writ key new one.key "${secret[@]}"
writ key new one.key "${secret[@]}"
writ key new two.key --no-passphrase --name 'Carol M.'
writ key new --keys new-keys --name dora --no-passphrase
writ key new
look new-keys
writ key list --keys new-keys
writ key list --keys new-keys --repository new
writ key list --keys nowhere
writ key show one.pub
writ key show one.key
writ key show secret
writ key passphrase one.key "${secret[@]}"
writ key passphrase two.key --no-passphrase
writ key passphrase nowhere.key --no-passphrase
openssl ecparam -name prime256v1 -genkey -noout -out device.pem 2>/dev/null
chmod 600 one.key && chmod 644 two.key
writ key list --keys .
