// The disk of a machine on which Writ was installed as from a package: units, users, directories, a repository, and the
// configuration of an agent that uses the server on the same machine.
import { chownSync, copyFileSync, mkdirSync } from 'node:fs';
import { systemClock } from '../../../src/platform/time/clock.js';
import { quietPolls } from '../agent/quiet-polls.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type SampleRepository, sampleRepository } from '../repository/sample-repository.js';
import { type MachineDisk, machineDisk } from './booted-systemd.js';
import type { BootedSystemd } from './machine-boot.js';

export interface MachineWithWrit {
  readonly disk: MachineDisk;
  /** Repository in /srv/writ/repo. */
  readonly repository: SampleRepository;
  /** Writes agent.yaml: the defaults, overridden by these keys. */
  configure(keys?: Readonly<Record<string, unknown>>): void;
  /** Writes a unit or a drop-in below /etc/systemd/system. */
  unit(name: string, text: string): void;
}

export const serverUrl = 'http://127.0.0.1:8080/';

/** Writes the files of an installed machine below the directory, with a root and without a release. */
export function machineWithWrit(dir: TempDir): MachineWithWrit {
  const disk = machineDisk(dir.path);
  const place = (path: string): TempDir => ({
    ...dir,
    path: disk.path(path),
    join: (...names) => dir.join(path, ...names),
  });
  mkdirSync(disk.path('/srv/writ'), { mode: 0o755 });
  const repository = publishedByRoot(sampleRepository(place('/srv/writ'), { clock: systemClock }));
  mkdirSync(disk.path('/etc/writ'));
  copyFileSync(repository.rootPath, disk.path('/etc/writ/root.json'));
  const base = { repository: serverUrl, ...quietPolls('machine') };
  const configure: MachineWithWrit['configure'] = (keys = {}) =>
    disk.write('/etc/writ/agent.yaml', JSON.stringify({ ...base, bundles: [{ name: 'dns-edge' }], ...keys }));
  configure();
  const unit: MachineWithWrit['unit'] = (name, text) => disk.write(`/etc/systemd/system/${name}`, text);
  return { disk, repository, configure, unit };
}

/** Makes root the owner: the package gives the directory to the server, and root may then not publish into it. */
function publishedByRoot(repository: SampleRepository): SampleRepository {
  const publish: SampleRepository['publish'] = (files, options) => {
    chownSync(repository.directory, 0, 0);
    return repository.publish(files, options);
  };
  return { ...repository, publish };
}

/** Creates users and directories as a package does after it was unpacked. */
export async function installUsers(machine: BootedSystemd): Promise<void> {
  const folder = '/opt/writ/packaging/systemd';
  for (const name of ['writ', 'writ-server']) {
    await machine.ok('systemd-sysusers', `${folder}/${name}.sysusers.conf`);
    await machine.ok('systemd-tmpfiles', '--create', `${folder}/${name}.tmpfiles.conf`);
  }
}
