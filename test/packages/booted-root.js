// A booted Debian: systemd is process 1, writes go to a disk over its root, and commands run in a shell of root. Its network
// is its own, with loopback only, or that of another process. Changes nothing of the root below.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootMachine } from '../../dist/test/kit/programs/machine-boot.js';

const overClean = `
mount -t overlay -o "lowerdir=$LOWER,upperdir=$DISK/upper,workdir=$DISK/work" none "$DISK/root"
cd "$DISK/root"
mkdir -p .old`;

/** A layer cannot be inside another layer, so writes go to memory. */
const overThis = `
mount -t tmpfs -o mode=755 none "$DISK/root"
cd "$DISK/root"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work none root
cd root
mkdir -p .old given
mount --bind "$DISK/given" given
: >etc/fstab
echo "$NAME" >etc/hostname`;

/**
 * Boots `lower`. The written files stay in `folder`, so that a second boot has them again.
 * @param {{ lower: string, folder: string, name: string, networkOf?: number }} wanted
 */
export function bootRoot({ lower, folder, name, networkOf }) {
  for (const part of ['upper/etc', 'work', 'root']) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, 'upper/etc/hostname'), `${name}\n`);
  writeFileSync(join(folder, 'upper/etc/hosts'), `127.0.0.1 localhost ${name}\n`);
  return open({ disk: overClean, env: { LOWER: lower, DISK: folder }, folder, name, networkOf });
}

/**
 * Boots the installed files of this machine, without its services.
 * @param {{ folder: string, name: string, networkOf?: number }} wanted the folder `given` in `folder` is mounted at /given
 */
export function bootThis({ folder, name, networkOf }) {
  for (const part of ['given', 'root']) mkdirSync(join(folder, part), { recursive: true });
  const env = { DISK: folder, NAME: name };
  return open({ disk: overThis, env, folder, name, networkOf, unit: 'basic.target' });
}

async function open({ folder, name, ...boot }) {
  const scriptLog = join(folder, 'script.log');
  const logs = [scriptLog, join(folder, 'upper/var/log/systemd.log')];
  const troubles = () =>
    logs
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8'))
      .join('\n');
  const machine = await bootMachine({ ...boot, scriptLog, troubles, commandMs: 180_000 });
  const environment = ['HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive'];
  const type = (line) => machine.run('env', '-C', '/root', ...environment, 'sh', '-c', line);
  return {
    ...machine,
    /** Runs a command in /root. @returns its exit code and output */
    type,
    /** @returns its stdout. @throws with the journal if it failed */
    sh: async (line) => {
      const { exitCode, stdout, stderr } = await type(line);
      if (exitCode === 0) return stdout;
      const { stdout: journal } = await type('journalctl --no-pager --quiet -n 60 -u "writ*"');
      throw new Error(`${name}: ${line}: exit ${exitCode}\n${stdout}${stderr}\n${journal}`);
    },
  };
}
