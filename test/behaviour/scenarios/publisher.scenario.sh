# The publisher: releases, what is refused, looking after the repository, and the server's part of the keys.
flags=(--repository repo --keys keys)
look repo
printf 'users:\n  eve: [reader]\n' >access/policy.yaml
publish second access access
printf 'users:\n  ann: [reader]\n' >access/policy.yaml
writ publish access "${flags[@]}" --bundle access --revision third --dry-run
publish third access access
publish third access access
writ publish access "${flags[@]}" --bundle access --channel canary --revision third
writ publish dns-edge "${flags[@]}" --bundle dns-edge --revision other -v
sed -i s/192.0.2.1/192.0.2.7/ dns-edge/block.rpz
writ publish dns-edge "${flags[@]}" --bundle dns-edge --revision other -v
writ publish access "${flags[@]}" --bundle Access
writ publish access "${flags[@]}"
writ publish access "${flags[@]}" --bundle access --channel 'no such'
writ publish nowhere "${flags[@]}" --bundle access
writ publish access --repository nowhere --keys keys --bundle access
writ publish dns-edge --repository repo --keys people --bundle access
writ publish dns-edge --repository repo --keys nowhere --bundle access
cp -r keys wrong && cp people/dora.key wrong/targets.key && cp people/dora.pub wrong/targets.pub
writ publish dns-edge --repository repo --keys wrong --bundle access
writ publish access --bundle access --nonsense
writ publish access "${flags[@]}" --bundle access --nonsense
mkdir bad
ln -s /etc/passwd bad/link
writ publish bad "${flags[@]}" --bundle access
mkfifo pipe && mkdir bad-2 && mv pipe bad-2/
writ publish bad-2 "${flags[@]}" --bundle access
mkdir empty
writ publish empty "${flags[@]}" --bundle access
writ publish access "${flags[@]}" --bundle fresh --after-serial 40 --revision lost
writ promote "${flags[@]}" --bundle access --from canary --to stable --dry-run
writ promote "${flags[@]}" --bundle access --from canary --to stable
writ promote "${flags[@]}" --bundle access --from none --to stable
writ withdraw "${flags[@]}" --bundle access --serial 2 --dry-run
writ withdraw "${flags[@]}" --bundle access --serial 2 --reason 'drops ann'
writ withdraw "${flags[@]}" --bundle access --serial 2
writ withdraw "${flags[@]}" --bundle access --serial 99
writ withdraw "${flags[@]}" --bundle access --serial 1 --serial 3
writ inspect repo
writ inspect repo --root keys/root.json
writ inspect repo --root people/dora.pub
writ inspect "file://$W/repo" --root keys/root.json
for archive in $(ls repo/targets/access | sort); do writ inspect "repo/targets/access/$archive"; done
cp "repo/targets/access/$(ls repo/targets/access | sort | head -1)" broken.tar.br
printf x | dd of=broken.tar.br bs=1 seek=40 conv=notrunc 2>/dev/null
writ inspect broken.tar.br
writ inspect nowhere
writ repo status --repository repo
writ repo status "${flags[@]}" --fail-within 400d
writ repo check "${flags[@]}"
writ repo export usb --repository repo
look usb
writ repo export usb --repository repo
writ repo export access --repository repo
writ refresh "${flags[@]}"
for _ in 1 2 3; do writ refresh "${flags[@]}"; done
writ repo gc --repository repo --keep 2 --dry-run
later 100000
writ repo gc --repository repo --keep 2 --grace 1h --yes
look repo
mkdir online && cp keys/snapshot.key keys/timestamp.key keys/root.json online/
writ refresh --repository repo --keys online
mkdir office && cp keys/targets.key keys/root.json office/
printf 'users: {}\n' >access/policy.yaml
writ publish access --repository repo --keys office --bundle access --revision waiting
writ repo status --repository repo
writ refresh --repository repo --keys online
writ key list "${flags[@]}"
writ key list --keys office --repository repo
writ key show keys/anna.pub
writ key show keys/anna.key
writ key show nowhere.pub
later 900000
writ repo status "${flags[@]}"
writ publish access "${flags[@]}" --bundle access --revision late
writ sign --role targets "${flags[@]}"
printf x >>"repo/targets/access/$(ls repo/targets/access | sort | head -1)"
writ repo check "${flags[@]}"
cp repo/metadata/timestamp.json kept.json
sed -i 's/"version":\([0-9]*\)/"version":9\1/' repo/metadata/timestamp.json
writ repo check "${flags[@]}"
writ repo status "${flags[@]}"
writ publish access "${flags[@]}" --bundle access --revision tampered
writ refresh "${flags[@]}"
look repo/metadata
