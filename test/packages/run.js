// `npm run test:packages`: builds the packages twice and compares them, lints them, and installs, upgrades, removes and purges them in a
// clean Debian 12, and in one that is booted; the npm tarball on two Nodes. As root, with debootstrap and lintian; `-- --one-build` leaves
// the comparison out; `-- --units` builds once and tries daemons under Debian's own units, and nothing else; `-- --whole` adds the other ways to a host, by npm and by Ansible; `-- --brief`, for the gate, builds once, lints,
// installs the package of a host, activates a policy, and removes the package.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { makeCleanRoot } from './clean-root.js';

const here = import.meta.dirname;
const root = join(here, '../..');
const folder = mkdtempSync('/var/tmp/writ-packages-');
const first = join(folder, 'first');
const writ = join(root, 'dist/writ/main.js');
const isBrief = process.argv.includes('--brief');
const areUnits = process.argv.includes('--units');
/** By parts of their names, in packages.test.js; a name that matches no case would leave it out without a word. */
const briefCases = [
  'are installed with nothing enabled',
  'lead from one edited file',
  'keep the state when they are removed',
];

async function step(program, args, env = {}) {
  const child = spawn(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  const [status] = await once(child, 'exit');
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: exit ${status}`);
}
/** One time for both builds: a commit may come between them. */
const time = { SOURCE_DATE_EPOCH: process.env.SOURCE_DATE_EPOCH ?? String(Math.floor(Date.now() / 1000)) };
const build = (to) => step(process.execPath, ['scripts/packaging/package.js', '--to', to], time);

/** With keys that nobody keeps: what a reader verifies is the root that the first of them signed. */
async function sign(release) {
  const [repository, keys] = [join(folder, 'repository'), join(folder, 'keys')];
  const node = (...args) => step(process.execPath, args);
  const where = ['--repository', repository, '--keys', keys];
  await node(writ, 'init', ...where, '--no-passphrase');
  await node('scripts/packaging/sign.js', release, ...where);
  await node(writ, 'inspect', repository, '--root', join(repository, 'metadata/1.root.json'));
}

const cases = isBrief ? briefCases.map((name) => `--test-name-pattern=${name}`) : [];
const missing = briefCases.filter(
  (name) => !readFileSync(join(here, 'packages.test.js'), 'utf8').includes(`it('${name}`),
);
if (missing.length > 0) throw new Error(`packages.test.js has no case ${missing.join(', ')}`);

try {
  const second = join(folder, 'second');
  const isCompared = !isBrief && !areUnits && !process.argv.includes('--one-build');
  // At the same time: most of a build is one thread of xz. One that fails is waited for, as the folder goes at the end.
  const builds = await Promise.allSettled((isCompared ? [first, second] : [first]).map(build));
  const failed = builds.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  if (isCompared) {
    const [one, other] = [first, second].map((path) => readFileSync(join(path, 'SHA256SUMS'), 'utf8'));
    if (one !== other) throw new Error(`two builds differ:\n${one}\n${other}`);
    process.stdout.write('two builds have the same bytes\n');
    rmSync(second, { recursive: true });
  }
  if (areUnits)
    await step(process.execPath, ['--test', join(here, 'units/units.test.js')], { WRIT_PACKAGES: first });
  else await tryPackages();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function tryPackages() {
  await sign(first);
  await step('sh', ['-c', `lintian --fail-on error,warning --allow-root ${first}/*.deb`]);
  const clean = join(folder, 'clean');
  makeCleanRoot(clean);
  const where = { WRIT_PACKAGES: first, WRIT_CLEAN_ROOT: clean };
  const others = process.argv.includes('--whole') ? ['other-ways.test.js'] : [];
  const files = isBrief
    ? ['packages.test.js']
    : ['fields.test.js', 'npm.test.js', 'packages.test.js', 'boot.test.js', ...others];
  for (const file of files) await step(process.execPath, ['--test', ...cases, join(here, file)], where);
}
