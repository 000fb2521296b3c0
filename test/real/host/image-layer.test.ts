// A host with its state directory in a layer of an image: overlayfs renames no directory of a lower layer. The real program, in a
// mount namespace of its own; needs root.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../../kit/disk/temp-dir.js';

const program = fileURLToPath(new URL('../../../writ/main.js', import.meta.url));
const skip = process.getuid?.() === 0 ? {} : { skip: 'mounting an overlay needs root' };

/** Pulls three releases, makes the state the lower layer of an overlay, and runs the commands on it. */
function onLowerLayer(directory: string, commands: string): string {
  const script = `
    set -eu
    cd ${directory}
    writ() { ${process.execPath} ${program} "$@"; }
    writ init --repository repo --keys keys --no-passphrase >log 2>&1
    mkdir source state
    for serial in 1 2 3; do
      echo $serial > source/f
      writ publish source --repository repo --keys keys --bundle b --revision r$serial >>log 2>&1
      writ pull --config agent.yaml >>log 2>&1
    done
    mkdir layers
    mount -t tmpfs tmpfs layers
    mkdir layers/upper layers/work
    cp -a state layers/lower
    mount -t overlay overlay -o lowerdir=layers/lower,upperdir=layers/upper,workdir=layers/work,redirect_dir=off state
    ${commands}
  `;
  fs.writeFileSync(
    `${directory}/agent.yaml`,
    [
      ...[`repository: file://${directory}/repo/`, `root: ${directory}/repo/metadata/1.root.json`],
      ...[`state: ${directory}/state`, `run: ${directory}/run`, 'sandbox: off'],
      ...['keep: { generations: 2, grace: 0s }', 'bundles:', '  - name: b', ''],
    ].join('\n'),
  );
  const { status, stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', script], { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}\n${stderr}\n${fs.readFileSync(`${directory}/log`, 'utf8')}`);
  return stdout;
}

describe('a state directory in a layer of an image', () => {
  it('follows a withdrawal to a release of the image, and collects the unused generations', skip, () => {
    using dir = tempDir('/var/tmp');
    const out = onLowerLayer(
      dir.path,
      `writ withdraw --bundle b --serial 3 --to 2 --reason bad --repository repo --keys keys >>log 2>&1
       writ pull --config agent.yaml
       cat state/policy/current/b/f
       ls state/archives/b | grep -c -e tmp -e replaced || true
       ls state/policy/bundles/b | wc -l
       writ doctor --config agent.yaml || true`,
    );
    assert.match(out, /ACTIVATED generation 4/);
    assert.match(out, /\n2\n0\n[23]\n/);
    assert.match(out, /directories of an image layer are copied/);
  });

  it('is repaired if a file of the image is damaged', skip, () => {
    using dir = tempDir('/var/tmp');
    const out = onLowerLayer(
      dir.path,
      `chmod u+w state/policy/current/b/f; echo damage > state/policy/current/b/f
       writ verify --repair --config agent.yaml || true
       cat state/policy/current/b/f
       writ verify --config agent.yaml`,
    );
    assert.match(out, /REPAIRED|repaired/);
    assert.match(out, /\n3\n/);
    assert.match(out, /INTACT/);
  });
});
