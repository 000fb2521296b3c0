// What lies where in the three Debian packages: the program with its Node, the units, the documents. Fetches and packs nothing.
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import { linkedToSite } from './document-links.js';

const home = 'usr/lib/writ';

/**
 * @param from paths: `root` of the checkout, `npm` staged, `modules` of every host, `node` { program, license }; and `site`, each file of
 * the documentation by its path
 */
export function stageWrit(tree, { root, npm, modules, node, site, ...release }) {
  const { put, units, document, debian } = placesOf(tree, root, 'writ', release);
  const share = join(npm, 'dist/share');
  // Its place on Debian is /usr/share, below.
  cpSync(join(npm, 'dist'), join(tree, home, 'dist'), { recursive: true, filter: (from) => from !== share });
  put(`${home}/package.json`, readFileSync(join(npm, 'package.json'), 'utf8'));
  cpSync(modules, join(tree, home, 'node_modules'), { recursive: true });
  mkdirSync(join(tree, home, 'bin'));
  copyFileSync(node.program, join(tree, home, 'bin/node'));
  const main = `${home}/dist/writ/main.js`;
  put(main, readFileSync(join(tree, main), 'utf8').replace(/^#!.*/, '#!/usr/lib/writ/bin/node'));
  mkdirSync(join(tree, 'usr/bin'), { recursive: true });
  symlinkSync(`../lib/writ/dist/writ/main.js`, join(tree, 'usr/bin/writ'));
  units('writ', ['writ-agent.service', 'writ-policy-ready.service', 'writ-policy.target']);
  put('etc/writ/agent.yaml', debian('agent.yaml'));
  const profile = readFileSync(join(root, 'packaging/apparmor/writ-policy'), 'utf8');
  put('etc/apparmor.d/abstractions/writ-policy', profile);
  document('LICENSE.node', readFileSync(node.license));
  const linked = (source, place) =>
    linkedToSite(readFileSync(join(root, source), 'utf8'), { source, place, site });
  const pages = readdirSync(join(root, 'docs')).filter((one) => one.endsWith('.md'));
  for (const name of ['README.md', 'SECURITY.md', 'CHANGELOG.md', ...pages.map((one) => `docs/${one}`)])
    document(name, linked(name, name));
  // Not packed: a browser opens them from here, by the address that an error ends with.
  for (const [path, content] of site) put(`usr/share/doc/writ/html/${path}`, content);
  for (const [from, to] of Object.entries({ 'docs/examples': 'examples', bundles: 'examples/bundles' })) {
    cpSync(join(root, from), join(tree, 'usr/share/doc/writ', to), { recursive: true });
    for (const name of readdirSync(join(root, from), { recursive: true }).filter((one) =>
      one.endsWith('.md'),
    ))
      put(`usr/share/doc/writ/${to}/${name}`, linked(`${from}/${name}`, `${to}/${name}`));
  }
  copyMade(join(root, 'dist/share'), 'usr/share', put);
}

export function stageServer(tree, { root, ...release }) {
  const { put, units, debian } = placesOf(tree, root, 'writ-server', release);
  units('writ-server', ['writ-server.service']);
  put('etc/writ/server.env', debian('server.env'));
}

export function stageFleet(tree, { root, modules, ...release }) {
  const { put, units, debian } = placesOf(tree, root, 'writ-fleet', release);
  units('writ-fleet', ['writ-fleet.service']);
  put('etc/writ/fleet.env', debian('fleet.env'));
  cpSync(modules, join(tree, home, 'node_modules'), { recursive: true });
}

/** How each package puts what every one has: units, users, directories, copyright, changes, and the overrides of lintian. */
function placesOf(tree, root, name, { version, epochSeconds }) {
  const put = (path, content) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content);
  };
  const debian = (file) => readFileSync(join(root, 'packaging/debian', name, file), 'utf8');
  const shipped = (file) => readFileSync(join(root, 'packaging/systemd', file));
  const document = (file, content) => put(`usr/share/doc/${name}/${file}.gz`, packed(content));
  const units = (prefix, files) => {
    for (const file of files) put(`lib/systemd/system/${file}`, shipped(file));
    put(`usr/lib/sysusers.d/${prefix}.conf`, shipped(`${prefix}.sysusers.conf`));
    put(`usr/lib/tmpfiles.d/${prefix}.conf`, shipped(`${prefix}.tmpfiles.conf`));
  };
  put(`usr/share/doc/${name}/copyright`, readFileSync(join(root, 'packaging/debian/copyright')));
  put(`usr/share/doc/${name}/changelog.gz`, packed(debianChange(version, epochSeconds)));
  const overrides = join(root, 'packaging/debian', name, 'lintian-overrides');
  if (existsSync(overrides)) put(`usr/share/lintian/overrides/${name}`, readFileSync(overrides));
  return { put, debian, document, units };
}

const packed = (content) => gzipSync(content, { level: constants.Z_BEST_COMPRESSION });

/** What changed is in CHANGELOG.md; Debian asks for the version in a form of its own. */
function debianChange(version, epochSeconds) {
  const at = new Date(epochSeconds * 1000).toUTCString().replace('GMT', '+0000');
  const { author } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));
  return `writ (${version}) stable; urgency=medium\n\n  * See /usr/share/doc/writ/CHANGELOG.md.gz.\n\n -- ${author}  ${at}\n`;
}

/** The files that the build makes from the table of commands: manual pages, and completion for three shells. */
function copyMade(folder, place, put) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const content = readFileSync(path);
    const to = `${place}/${path.slice(folder.length + 1)}`;
    if (path.endsWith('.1')) put(`${to}.gz`, packed(content));
    else put(to, content);
  }
}
