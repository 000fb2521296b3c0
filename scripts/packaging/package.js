// `npm run package`: everything that is shipped, from a built checkout into release/: the npm tarball, the Debian packages of this
// machine's architecture (`-- --architecture arm64` for the other one), with the docs site in them (`npm ci --prefix site` once), the bill of materials and SHA256SUMS.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeDebianPackage } from './debian-package.js';
import { stageFleet, stageServer, stageWrit } from './debian-trees.js';
import { installModules } from './modules.js';
import { fetchNode } from './node-runtime.js';
import { packNpmPackage, stageNpmPackage } from './npm-package.js';
import { run } from './run.js';
import { builtSite } from './site.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: { architecture: { type: 'string' }, to: { type: 'string' }, version: { type: 'string' } },
});
const release = resolve(values.to ?? join(root, 'release'));
const architecture = values.architecture ?? { x64: 'amd64', arm64: 'arm64' }[process.arch];
const epochSeconds = Number(
  process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct'], { cwd: root }).trim(),
);
// Checked first, so that a build without its packages changes nothing.
const site = await builtSite();
const work = join(release, 'work');
rmSync(release, { recursive: true, force: true });
mkdirSync(work, { recursive: true });

const npm = join(work, 'npm');
stageNpmPackage(root, npm);
packNpmPackage(npm, release);

const version = values.version ?? JSON.parse(readFileSync(join(npm, 'package.json'), 'utf8')).version;
const modules = installModules(npm, architecture, join(work, 'modules'));
const node = fetchNode(root, architecture, join(work, 'node'));
const common = { root, version, epochSeconds };
const stages = {
  writ: (tree) => stageWrit(tree, { ...common, npm, modules: modules.host, node, site }),
  'writ-server': (tree) => stageServer(tree, common),
  'writ-fleet': (tree) => stageFleet(tree, { ...common, modules: modules.fleet }),
};
for (const [name, stage] of Object.entries(stages)) {
  const tree = join(work, name);
  mkdirSync(tree);
  stage(tree);
  const source = join(root, 'packaging/debian', name);
  makeDebianPackage({ name, architecture, version, epochSeconds, source, tree, destination: release });
}

writeFileSync(join(release, 'sbom.cdx.json'), billOfMaterials(npm));
rmSync(work, { recursive: true });
const sums = readdirSync(release)
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(release, name)))
        .digest('hex')}  ${name}\n`,
  );
writeFileSync(join(release, 'SHA256SUMS'), sums.join(''));
process.stdout.write(`${sums.join('')}in ${release}\n`);

/** CycloneDX, without its number and time, which differ with each run. */
function billOfMaterials(folder) {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--omit=dev', '--silent'];
  const { serialNumber: _number, metadata, ...bill } = JSON.parse(run('npm', args, { cwd: folder }));
  const { timestamp: _time, ...about } = metadata;
  const { version: nodeVersion, packages } = JSON.parse(
    readFileSync(join(root, 'packaging/node-runtime.json'), 'utf8'),
  );
  const { name, integrity } = packages[architecture];
  const content = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  const hashes = [{ alg: 'SHA-512', content }];
  const runtime = {
    type: 'application',
    name,
    version: nodeVersion,
    purl: `pkg:npm/${name}@${nodeVersion}`,
    hashes,
  };
  const whole = { ...bill, metadata: about, components: [...bill.components, runtime] };
  return `${JSON.stringify(whole, null, 2)}\n`;
}
