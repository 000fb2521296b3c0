// `npm run test:packages`: builds the packages twice, compares and lints them. It installs, upgrades, removes and purges them in
// a clean Debian 12 and in a booted one, and tests the npm tarball on two Nodes. Needs root, debootstrap and lintian.
// `-- --one-build` omits the comparison. `-- --units` builds once and tests only daemons under Debian's own units. `-- --whole`
// adds the installations by npm and by Ansible. `-- --brief`, for the gate, builds once, lints, installs the package of a host,
// activates a policy, and removes the package.
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
/** Parts of titles in packages.test.js. run.js checks that each exists, because node would skip a missing one silently. */
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
/** The same time for both builds, because a commit may be made between them. */
const time = { SOURCE_DATE_EPOCH: process.env.SOURCE_DATE_EPOCH ?? String(Math.floor(Date.now() / 1000)) };
const build = (to) => step(process.execPath, ['scripts/packaging/package.js', '--to', to], time);

/** Signs the packages with temporary keys, and verifies the repository from the root that the first of them signed. */
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
  // Both builds run at once, because most of a build is one thread of xz. Both end before the folder is removed.
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
  const others = process.argv.includes('--whole') ? ['other-installs.test.js'] : [];
  const files = isBrief
    ? ['packages.test.js']
    : ['fields.test.js', 'npm.test.js', 'packages.test.js', 'boot.test.js', ...others];
  for (const file of files) await step(process.execPath, ['--test', ...cases, join(here, file)], where);
}
