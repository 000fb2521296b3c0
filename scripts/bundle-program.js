// Makes the shipped program, which every test starts: the output of tsc and the joined packages, in one
// file for the code of the same commands. Each file has its map, and all of them have one file with their licenses.
// Decides nothing: the program has the same code that unit tests load from dist/src.
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';

/** What starts by itself, or is found beside its importer at run time: all are in one folder. */
const entryPoints = [
  'cli/main.js',
  'agent/checks/parse-check-worker.js',
  'fleet/store/sqlite-thread.js',
  'sdk/policy-reader.js',
];

/** Files that code reads from its own folder, in dist/src and in the program alike. */
const assets = ['fleet/page/page.css', 'fleet/page/live.js', 'fleet/page/icon.svg'];

/** @param {string} root of a checkout that tsc has compiled, with its packages joined */
export async function bundleProgram(root) {
  const folder = join(root, 'dist/writ');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  await build({
    absWorkingDir: root,
    entryPoints: entryPoints.map((path) => `dist/src/${path}`),
    outdir: folder,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    plugins: [foldIn(root, imports)],
    // Names stay, and lines stay short, so that a stack trace is useful without a map.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 160,
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'warning',
  });
  for (const path of assets) {
    copyFileSync(join(root, 'src', path), join(root, 'dist/src', path));
    copyFileSync(join(root, 'src', path), join(folder, basename(path)));
  }
  writeFileSync(join(folder, 'LICENSES.txt'), licensesOf(root, folder));
  // esbuild writes 0644, and `npx writ` would fail with "Permission denied" after every build.
  chmodSync(join(folder, 'main.js'), 0o755);
}

/** The joined packages, by the names that sources import them by; all else that is installed stays outside. */
function foldIn(root, imports) {
  const setup = ({ onResolve }) =>
    onResolve({ filter: /^#/ }, ({ path }) => ({ path: join(root, imports[path].default) }));
  return { name: 'fold-in', setup };
}

/** Each package that a map names as a source of a file. */
function licensesOf(root, folder) {
  const maps = readdirSync(folder).filter((name) => name.endsWith('.map'));
  const sources = maps.flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).sources);
  const packages = sources.flatMap((path) => /node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  return [...new Set(packages)]
    .sort()
    .map((path) => licenseOf(join(root, path)))
    .join('\n');
}

function licenseOf(directory) {
  const { name, version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  const file = readdirSync(directory).find((one) => /^licen[cs]e/i.test(one));
  if (file === undefined) throw new Error(`${name} has no license file`);
  return `${name} ${version}\n\n${readFileSync(join(directory, file), 'utf8')}`;
}
