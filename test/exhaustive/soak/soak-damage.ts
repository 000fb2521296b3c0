// Damages files on a host's disk, as bit rot, an operator's mistake or a bad disk does. Records each damaged tree for the
// readers before it damages it. Owns the damage; soak-repair.ts requires its repair.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Seeded } from '../../kit/assert/seeded.js';
import { appendKnown } from './world/known-releases.js';
import type { SoakHost } from './world/soak-host.js';

type Harm = (path: string, random: Seeded) => void;

/** Damages that leave a regular file, or none. */
const fileHarms: Readonly<Record<string, Harm>> = {
  'a bit turned': (path, random) => {
    const bytes = fs.readFileSync(path);
    if (bytes.length === 0) return fs.writeFileSync(path, 'x');
    const at = random.int(bytes.length);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    fs.writeFileSync(path, bytes);
  },
  truncated: (path) => fs.truncateSync(path, Math.floor(fs.statSync(path).size / 2)),
  emptied: (path) => fs.truncateSync(path, 0),
  removed: (path) => fs.rmSync(path),
  'replaced by garbage': (path) => fs.writeFileSync(path, Buffer.alloc(3000, 0xff)),
};

const treeHarms: Readonly<Record<string, Harm>> = {
  ...fileHarms,
  'edited by hand': (path) => fs.appendFileSync(path, '# edited\n'),
  'made private': (path) => fs.chmodSync(path, 0o600),
  'made writable for all': (path) => fs.chmodSync(path, 0o666),
  'made executable': (path) => fs.chmodSync(path, 0o755),
  'joined by a file': (path) => fs.writeFileSync(`${path}.orig`, 'extra\n'),
  'joined by a directory': (path) => fs.mkdirSync(`${path}.d`),
  'replaced by a link': (path) => {
    fs.rmSync(path);
    fs.symlinkSync('/etc/hostname', path);
  },
  'replaced by a directory': (path) => {
    fs.rmSync(path);
    fs.mkdirSync(path);
  },
};

function pickHarm(harms: Readonly<Record<string, Harm>>, random: Seeded): readonly [string, Harm] {
  return random.pick(Object.entries(harms));
}

function filesBelow(directory: string): string[] {
  return fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name))
    .sort();
}

/** Damages a path, which the agent may move or collect at the same moment. @returns a description of the damage */
function harm(path: string, [how, act]: readonly [string, Harm], random: Seeded): string {
  try {
    act(path, random);
    return `${path} ${how}`;
  } catch (error) {
    return `${path} not ${how}: ${String(error)}`;
  }
}

/** Damages one file of an active tree. @returns a description of the damage */
export function damageActiveTree(host: SoakHost, knownFile: string, random: Seeded): string {
  const { bundles } = host.read();
  if (bundles.length === 0) return 'nothing active to damage';
  const { tree } = random.pick(bundles);
  appendKnown(knownFile, { type: 'tainted', path: tree });
  return harm(random.pick(filesBelow(tree)), pickHarm(treeHarms, random), random);
}

/** Damages one file of a retained tree that is not active. @returns a description of the damage */
export function damageRetainedTree(host: SoakHost, knownFile: string, random: Seeded): string {
  const active = host.read().bundles.map(({ tree }) => tree);
  const kept = fs
    .readdirSync(join(host.places.policy, 'bundles'))
    .flatMap((bundle) =>
      fs.readdirSync(join(host.places.policy, 'bundles', bundle)).map((name) => `${bundle}/${name}`),
    )
    .map((name) => fs.realpathSync(join(host.places.policy, 'bundles', name)))
    .filter((tree) => !active.includes(tree));
  if (kept.length === 0) return 'no retained tree to damage';
  const tree = random.pick(kept);
  appendKnown(knownFile, { type: 'tainted', path: tree });
  const files = filesBelow(tree);
  return files.length === 0 ? 'an empty tree' : harm(random.pick(files), pickHarm(treeHarms, random), random);
}

/** Damages a link of the active generation. @returns a description of the damage */
export function damageGeneration(host: SoakHost, knownFile: string, random: Seeded): string {
  const { generation, bundles } = host.read();
  if (generation === undefined || bundles.length === 0) return 'nothing active to damage';
  const { bundle } = random.pick(bundles);
  appendKnown(knownFile, { type: 'tainted', path: generation });
  const link = join(generation, bundle);
  const others = fs.readdirSync(join(host.places.policy, 'bundles', bundle));
  const harms: Record<string, Harm> = {
    removed: (path) => fs.rmSync(path),
    'pointed elsewhere': (path) => {
      fs.rmSync(path);
      fs.symlinkSync(`../../bundles/${bundle}/${random.pick(others)}`, path);
    },
  };
  return harm(link, pickHarm(harms, random), random);
}

/** Damages the link `current`. The caller records its repair. @returns a description of the damage */
export function damageCurrent(host: SoakHost, knownFile: string, random: Seeded): string {
  const link = join(host.places.policy, 'current');
  appendKnown(knownFile, { type: 'link', policy: host.places.policy, state: 'damaged' });
  const harms: Record<string, Harm> = {
    removed: (path) => fs.rmSync(path),
    'pointed nowhere': (path) => {
      fs.rmSync(path);
      fs.symlinkSync('generations/999999999', path);
    },
  };
  return harm(link, pickHarm(harms, random), random);
}

/** Damages a retained archive. @returns a description of the damage */
export function damageArchives(host: SoakHost, random: Seeded): string {
  const files = filesBelow(join(host.places.state, 'archives'));
  if (files.length === 0) return 'no archive to damage';
  return harm(random.pick(files), pickHarm(fileHarms, random), random);
}

/** Damages trusted metadata. @returns a description of the damage */
export function damageTrust(host: SoakHost, random: Seeded): string {
  const files = filesBelow(join(host.places.state, 'trust'));
  if (files.length === 0) return 'no metadata to damage';
  return harm(random.pick(files), pickHarm(fileHarms, random), random);
}

/** Damages a file of the state that lasts longer than a cycle. @returns a description of the damage */
export function damageStateFile(host: SoakHost, random: Seeded): string {
  const names = ['ledger.json', 'ledger.json', 'rejected.json', 'history.jsonl'];
  const files = names.map((name) => join(host.places.state, name)).filter((path) => fs.existsSync(path));
  if (files.length === 0) return 'no state file to damage';
  return harm(random.pick(files), pickHarm(fileHarms, random), random);
}
