// `npm run test:packages`: builds the packages twice and compares them, lints them, and installs, upgrades, removes and purges them in a
// clean Debian 12, and in one that is booted. As root, with debootstrap and lintian; `-- --one-build` leaves the comparison out;
// `-- --whole` adds the other ways to a host, by npm and by Ansible.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeCleanRoot } from './clean-root.js';

const here = import.meta.dirname;
const root = join(here, '../..');
const folder = mkdtempSync('/var/tmp/writ-packages-');
const first = join(folder, 'first');
const writ = join(root, 'dist/writ/main.js');

function step(program, args, env = {}) {
  const { status } = spawnSync(program, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: exit ${status}`);
}
/** One time for both builds: a commit may come between them. */
const time = { SOURCE_DATE_EPOCH: process.env.SOURCE_DATE_EPOCH ?? String(Math.floor(Date.now() / 1000)) };
const build = (to) => step(process.execPath, ['scripts/packaging/package.js', '--to', to], time);

/** With keys that nobody keeps: what a reader verifies is the root that the first of them signed. */
function sign(release) {
  const [repository, keys] = [join(folder, 'repository'), join(folder, 'keys')];
  step(process.execPath, [writ, 'init', '--repository', repository, '--keys', keys, '--no-passphrase']);
  step(process.execPath, ['scripts/packaging/sign.js', release, '--repository', repository, '--keys', keys]);
  step(process.execPath, [writ, 'inspect', repository, '--root', join(repository, 'metadata/1.root.json')]);
}

try {
  build(first);
  if (!process.argv.includes('--one-build')) {
    const second = join(folder, 'second');
    build(second);
    const [one, other] = [first, second].map((path) => readFileSync(join(path, 'SHA256SUMS'), 'utf8'));
    if (one !== other) throw new Error(`two builds differ:\n${one}\n${other}`);
    process.stdout.write('two builds have the same bytes\n');
    rmSync(second, { recursive: true });
  }
  sign(first);
  step('sh', ['-c', `lintian --fail-on error,warning --allow-root ${first}/*.deb`]);
  const clean = join(folder, 'clean');
  makeCleanRoot(clean);
  const others = process.argv.includes('--whole') ? ['other-ways.test.js'] : [];
  for (const file of ['fields.test.js', 'npm.test.js', 'packages.test.js', 'boot.test.js', ...others])
    step(process.execPath, ['--test', join(here, file)], { WRIT_PACKAGES: first, WRIT_CLEAN_ROOT: clean });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
