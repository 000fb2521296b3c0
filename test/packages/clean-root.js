// A clean Debian of this machine's own release in a folder, made by debootstrap from this machine's own package sources, and
// commands that run in it with an empty environment and a process namespace. Changes nothing outside of the folder.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** The dependencies of the packages that a bare Debian lacks, so that an install needs no network. */
const included = 'systemd,bubblewrap,libatomic1,libstdc++6,debconf,rsync';

/** @returns the first source of this machine that has the release's main archive */
function sourceOf(release) {
  const format = '$(REPO_URI) $(RELEASE) $(COMPONENT)';
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
    encoding: 'utf8',
  });
  const lines = stdout.split('\n').map((line) => line.split(' '));
  return lines.find(([, name, part]) => name === release && part === 'main')?.[0];
}

/**
 * Makes a bare Debian with the named packages.
 * @param {string} folder that does not exist yet
 * @param {string} packages separated by commas
 */
export function debootstrap(folder, release, packages) {
  const source = sourceOf(release);
  if (source === undefined) throw new Error(`apt has no source of ${release} main: sudo apt-get update`);
  // A mount namespace: its mounts end with the process, also after a failure.
  const args = [
    '--mount',
    'debootstrap',
    '--variant=minbase',
    `--include=${packages}`,
    release,
    folder,
    source,
  ];
  // A second attempt, because a mirror may be busy for a moment.
  const made = [1, 2].some(() => {
    rmSync(folder, { recursive: true, force: true });
    return spawnSync('unshare', args, { stdio: ['ignore', 'ignore', 'inherit'] }).status === 0;
  });
  if (!made) throw new Error(`unshare ${args.join(' ')} failed`);
}

/**
 * Makes a clean root, as a copy of WRIT_CLEAN_ROOT if that is set.
 * @param {string} folder that does not exist yet
 */
export function makeCleanRoot(folder, release = 'bookworm') {
  const made = process.env.WRIT_CLEAN_ROOT;
  if (made === undefined) debootstrap(folder, release, included);
  else if (spawnSync('cp', ['-a', made, folder]).status !== 0) throw new Error(`no copy of ${made}`);
  const inside = (name) => join(folder, name);
  mkdirSync(inside('packages'), { recursive: true });
  // The disk of this root need not survive a power cut.
  writeFileSync(inside('etc/dpkg/dpkg.cfg.d/quick'), 'force-unsafe-io\n');

  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const own = ['HOME=/root', 'LC_ALL=C', 'DEBIAN_FRONTEND=noninteractive'];
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', `--mount-proc=${inside('proc')}`];
  const argv = (script) => [
    ...[...namespaces, 'chroot', folder],
    ...['env', '-i', path, ...own, 'sh', '-ec', script],
  ];
  const run = (script) => {
    const { status, stdout, stderr } = spawnSync('unshare', argv(script), {
      encoding: 'utf8',
      timeout: 300_000,
    });
    return { status, stdout, stderr, text: `exit ${status}\n${stdout}${stderr}` };
  };
  return {
    inside,
    run,
    /** @returns its output. @throws if it failed */
    ok: (script) => {
      const ended = run(script);
      if (ended.status !== 0) throw new Error(`${script}: ${ended.text}`);
      return `${ended.stdout}${ended.stderr}`;
    },
    start: (script) => spawn('unshare', argv(`exec ${script}`), { stdio: ['ignore', 'ignore', 'inherit'] }),
    /** Copies the package into the root. @returns its path inside */
    bring: (deb) => {
      cpSync(deb, inside(`packages/${basename(deb)}`));
      return `/packages/${basename(deb)}`;
    },
  };
}
