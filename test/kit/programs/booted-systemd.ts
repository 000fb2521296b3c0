// The disk of a machine that a systemd boots from with the programs of this machine: its own /etc, /var and /srv, and the
// units of Writ at the paths of a package. machine-boot.ts starts and ends it.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../sources/source-files.js';
import { type BootedSystemd, bootMachine, controlGroupRoot, groupName, namespaces } from './machine-boot.js';
import { needs } from './real-programs.js';

/** The disk of a machine, which survives a boot. */
export interface MachineDisk {
  /** @param path absolute, in the machine. @returns its path on this host */
  path(path: string): string;
  /** Writes a file with its parents. */
  write(path: string, text: string, mode?: number): void;
  /** @returns stdout and stderr of a service */
  log(service: string): string;
}

/** @returns options for node:test: empty if a systemd can be booted; in CI a missing program fails the test */
export function needsBoot(): { skip?: string } {
  const missing = [
    needs('systemctl', 'systemd'),
    needs('unshare', 'util-linux'),
    needs('bwrap', 'bubblewrap'),
  ].find(({ skip }) => skip !== undefined);
  if (missing !== undefined) return missing;
  if (process.getuid?.() !== 0) return { skip: 'only root can boot a systemd' };
  const group = controlGroupRoot();
  if (group === undefined) return { skip: 'no tree of control groups (version 2) is mounted here' };
  const trial = 'mount -t cgroup2 none /mnt && mount -t proc none /proc';
  const tried = spawnSync('unshare', [...namespaces, '--net', '--cgroup', 'sh', '-c', trial]);
  if (tried.status !== 0) return { skip: 'this container may not make the namespaces of a machine' };
  try {
    const path = join(group, groupName());
    fs.mkdirSync(path);
    fs.rmdirSync(path);
    return {};
  } catch {
    return { skip: 'control groups are read-only here' };
  }
}

/** @returns options for node:test: empty if units of a machine can have limits of memory and processes */
export function needsControllers(): { skip?: string } {
  const boot = needsBoot();
  const root = controlGroupRoot();
  if (boot.skip !== undefined || root === undefined) return boot;
  const given = fs.readFileSync(join(root, 'cgroup.subtree_control'), 'utf8').trim().split(' ');
  const missing = ['memory', 'pids'].filter((name) => !given.includes(name));
  const skip = `control groups (version 2) have no controller here for: ${missing.join(', ')}`;
  return missing.length === 0 ? {} : { skip };
}

/** @param directory of the disk; must exist */
export function machineDisk(directory: string): MachineDisk {
  fs.chmodSync(directory, 0o755);
  const path = (inside: string): string => join(directory, inside);
  const write: MachineDisk['write'] = (inside, text, mode = 0o644) => {
    fs.mkdirSync(dirname(path(inside)), { recursive: true });
    fs.writeFileSync(path(inside), text, { mode });
  };
  for (const name of ['etc', 'var/lib', 'var/log', 'var/tmp', 'srv', 'opt'])
    fs.mkdirSync(path(name), { recursive: true });
  for (const name of ['passwd', 'group', 'shadow', 'gshadow', 'nsswitch.conf', 'ld.so.cache', 'alternatives'])
    if (fs.existsSync(`/etc/${name}`)) fs.cpSync(`/etc/${name}`, path(`/etc/${name}`), { recursive: true });
  fs.symlinkSync('/run', path('var/run'));
  write('/etc/hosts', '127.0.0.1 localhost\n');
  write('/etc/machine-id', `${randomBytes(16).toString('hex')}\n`);
  // The machine has no journal.
  const log = (service: string): string => `/var/log/${service}.log`;
  write(
    '/etc/systemd/system/service.d/log.conf',
    `[Service]\nStandardOutput=append:${log('%n')}\nStandardError=append:${log('%n')}\n`,
  );
  return {
    path,
    write,
    log: (service) => {
      const file = path(log(service));
      return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    },
  };
}

/** Units of this machine's systemd that process 1 requires. */
const targets =
  'sysinit basic multi-user shutdown umount final local-fs sockets paths timers slices network rescue emergency';

/** Builds the root of process 1. Environment: DISK, PROJECT, NODE, TARGETS. */
const setup = `cd "$DISK"
mkdir -p usr run tmp proc sys dev opt/writ mnt root home .layers .old
chmod 1777 tmp var/tmp
mount --bind . . && cd "$DISK"
for link in bin sbin lib lib32 lib64 libx32; do
  if [ -L /$link ]; then ln -sfn "$(readlink /$link)" $link
  elif [ -d /$link ]; then mkdir -p $link; mount --rbind /$link $link; fi
done
mount --rbind /usr usr
mount -t tmpfs -o mode=755 none .layers
mkdir -p .layers/bin .layers/work .layers/units .layers/none
ln -s /opt/writ/dist/writ/main.js .layers/bin/writ
touch .layers/bin/node
mount -t overlay -o lowerdir=/usr/bin,upperdir=.layers/bin,workdir=.layers/work none usr/bin
mount --bind "$NODE" usr/bin/node
mount --bind "$PROJECT" opt/writ
for target in $TARGETS; do cp /usr/lib/systemd/system/$target.target .layers/units/; done
cp "$PROJECT"/packaging/systemd/*.service "$PROJECT"/packaging/systemd/*.target .layers/units/
mount --bind .layers/units usr/lib/systemd/system
mount --bind .layers/none usr/lib/systemd/system-generators
`;

/**
 * Boots from the disk. Resolves when process 1 accepts commands; its jobs may still wait.
 * @example await using machine = await bootSystemd(disk);
 */
export function bootSystemd(disk: MachineDisk): Promise<BootedSystemd> {
  const troubles = (service?: string): string =>
    `${service === undefined ? '' : disk.log(service)}\n${disk.log('setup')}\n${disk.log('systemd')}`;
  const env = {
    DISK: disk.path('/'),
    PROJECT: projectRoot,
    NODE: fs.realpathSync(process.execPath),
    TARGETS: targets,
  };
  return bootMachine({ disk: setup, env, scriptLog: disk.path('/var/log/setup.log'), troubles });
}
