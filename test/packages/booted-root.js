// A clean Debian that is booted: its systemd as process 1, its own disk over the clean root, and a shell of root in it as a person has
// one. Its network is its own, with loopback alone, or that of another one. Touches nothing of the clean root.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootMachine } from '../../dist/test/kit/programs/machine-boot.js';

const disk = `
mount -t overlay -o "lowerdir=$LOWER,upperdir=$DISK/upper,workdir=$DISK/work" none "$DISK/root"
cd "$DISK/root"
mkdir -p .old`;

/**
 * @param {{ lower: string, folder: string, name: string, networkOf?: number }} wanted `folder` keeps what is written: a second boot
 *   from it finds it again
 */
export async function bootRoot({ lower, folder, name, networkOf }) {
  for (const part of ['upper/etc', 'work', 'root']) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, 'upper/etc/hostname'), `${name}\n`);
  writeFileSync(join(folder, 'upper/etc/hosts'), `127.0.0.1 localhost ${name}\n`);
  const scriptLog = join(folder, 'script.log');
  const logs = [scriptLog, join(folder, 'upper/var/log/systemd.log')];
  const machine = await bootMachine({
    ...{ disk, env: { LOWER: lower, DISK: folder }, scriptLog, networkOf, commandMs: 180_000 },
    troubles: () =>
      logs
        .filter((path) => existsSync(path))
        .map((path) => readFileSync(path, 'utf8'))
        .join('\n'),
  });
  const environment = ['HOME=/root', 'LC_ALL=C.UTF-8', 'DEBIAN_FRONTEND=noninteractive'];
  const type = (line) => machine.run('env', '-C', '/root', ...environment, 'sh', '-c', line);
  return {
    ...machine,
    /** In /root. @returns how it ended */
    type,
    /** @returns what it printed on stdout; throws with the journal where it failed */
    sh: async (line) => {
      const { exitCode, stdout, stderr } = await type(line);
      if (exitCode === 0) return stdout;
      const { stdout: journal } = await type('journalctl --no-pager --quiet -n 60 -u "writ*"');
      throw new Error(`${name}: ${line}: exit ${exitCode}\n${stdout}${stderr}\n${journal}`);
    },
  };
}
