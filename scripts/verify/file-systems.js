// Runs the tests of what a host has on its disk on other file systems than that of this machine: overlay (as in a container), tmpfs, ext4,
// XFS and btrfs. As root; works in a mount namespace and in images of its own, so that nothing stays mounted. Arguments: the file systems
// that are wanted.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const insideMark = 'WRIT_FILE_SYSTEMS_INSIDE';
const imageBytes = 4 * 2 ** 30;
const makers = {
  ext4: ['mkfs.ext4', '-q', '-F'],
  xfs: ['mkfs.xfs', '-q', '-f'],
  btrfs: ['mkfs.btrfs', '-q', '-f'],
};
const known = ['overlay', 'tmpfs', ...Object.keys(makers)];
/** What writes policy, state, trust and repositories; the rest of the tests does not depend on the file system. */
const tests = [
  'unit/platform/disk',
  'unit/agent/',
  'unit/trust/store',
  'unit/publisher/',
  'scenario/cycle',
  'scenario/disk',
  'scenario/integrity',
  'scenario/start',
];

const given = process.argv.slice(2);
const unknown = given.filter((name) => !known.includes(name));
if (unknown.length > 0)
  fail(`there is no file system ${unknown.join(', ')} here; there are ${known.join(', ')}`);

if (process.env[insideMark] === undefined) {
  const env = { ...process.env, [insideMark]: '1' };
  const inside = ['-m', process.execPath, ...process.argv.slice(1)];
  process.exitCode = spawnSync('unshare', inside, { stdio: 'inherit', env }).status ?? 1;
} else {
  const failed = (given.length > 0 ? given : known).filter((name) => !runOn(name));
  for (const name of failed) process.stderr.write(`✖ ${name}\n`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function runOn(name) {
  const folder = mkdtempSync('/var/tmp/writ-file-system-');
  chmodSync(folder, 0o755);
  const point = join(folder, 'mounted');
  mkdirSync(point);
  try {
    if (name === 'overlay') mountOverlay(folder, point);
    else if (name === 'tmpfs') run('mount', '-t', 'tmpfs', 'tmpfs', point);
    else mountImage(name, join(folder, 'image'), point);
    chmodSync(point, 0o1777);
    process.stdout.write(`\n== ${name}\n`);
    const env = { ...process.env, TMPDIR: point };
    return (
      spawnSync(process.execPath, ['scripts/run-tests.js', ...tests], { cwd: root, env, stdio: 'inherit' })
        .status === 0
    );
  } finally {
    for (const mounted of [point, join(folder, 'layers')]) spawnSync('umount', ['-l', mounted]);
    rmSync(folder, { recursive: true, force: true });
  }
}

function mountOverlay(folder, point) {
  // A lower layer on a tmpfs: an overlay cannot be the upper layer of another, as in a container.
  const layers = join(folder, 'layers');
  mkdirSync(layers);
  run('mount', '-t', 'tmpfs', 'tmpfs', layers);
  for (const name of ['lower', 'upper', 'work']) mkdirSync(join(layers, name));
  const places = { lowerdir: 'lower', upperdir: 'upper', workdir: 'work' };
  const options = Object.entries(places).map(([option, name]) => `${option}=${join(layers, name)}`);
  run('mount', '-t', 'overlay', 'overlay', '-o', options.join(','), point);
}

function mountImage(kind, image, point) {
  writeFileSync(image, '');
  truncateSync(image, imageBytes);
  run(...makers[kind], image);
  run('mount', '-t', kind, '-o', 'loop', image, point);
}

function run(program, ...args) {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) fail(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}
