// The shipped files: the complete bundled program, with maps and licenses, and no other program.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { longCase } from '../../kit/assert/long-case.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface PackageJson {
  readonly bin: { readonly writ: string };
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly files: readonly string[];
  readonly version: string;
}

interface Packed {
  readonly files: readonly { readonly path: string }[];
}

const { bin, exports, files, version } = JSON.parse(
  readFileSync(join(projectRoot, 'package.json'), 'utf8'),
) as PackageJson;
const folder = join(projectRoot, 'dist/writ');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
// The script of the pages is no module of the program, because browsers run it.
const modules = readdirSync(folder).filter((name) => name.endsWith('.js') && name !== 'live.js');

async function output(...argv: readonly [string, ...string[]]): Promise<string> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
  const ended = await runCommand({ argv, env, timeoutMs: 60_000, maxOutputBytes: 1_000_000 });
  assert.ok(ended.kind === 'exited' && ended.exitCode === 0, JSON.stringify(ended));
  return ended.stdout;
}

describe('the program', longCase, () => {
  it('is the same file for the package, the images and the tests', () => {
    assert.equal(join(projectRoot, bin.writ), realpathSync(writProgram));
    assert.deepEqual(
      files.filter((name) => name.startsWith('dist/')),
      ['dist/writ', 'dist/src/sdk/*.d.ts', 'dist/share'],
    );
    const copied = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8').match(/^COPY --from=build .*$/gm);
    assert.deepEqual(copied, ['COPY --from=build /src/dist/writ/ dist/writ/']);
  });

  it('needs no output of tsc, and has a map beside each file that names the sources', () => {
    for (const name of modules) {
      // esbuild breaks long lines, within strings too.
      const code = read(name).replaceAll('\\\n', '');
      const imported = [...code.matchAll(/(?:from|import|import\()"(\.{1,2}\/[^"]*|#[^"]*)"/g)];
      for (const [, path = ''] of imported) assert.ok(modules.includes(path.slice(2)), `${name}: ${path}`);
      for (const [, path = ''] of code.matchAll(/new URL\("\.\/([^"]*)"/g))
        assert.ok(existsSync(join(folder, path)), `${name}: ${path}`);
      assert.ok(code.endsWith(`//# sourceMappingURL=${name}.map\n`), name);
      const { sources } = JSON.parse(read(`${name}.map`)) as { readonly sources: readonly string[] };
      for (const source of sources) {
        const isMade = source.endsWith('/core/schema/compiled-schemas.js');
        assert.ok(
          isMade || /\/scripts\/packages\/|\/node_modules\/|\/src\/.*\.tsx?$/.test(source),
          `${name}: ${source}`,
        );
      }
    }
  });

  it('lists the license of every package that it contains', () => {
    const named = [...read('LICENSES.txt').matchAll(/^(\S+) \d+\.\d+\.\d+$/gm)].map(([, name]) => name);
    const maps = modules.map((name) => read(`${name}.map`)).join('');
    const inside = [...maps.matchAll(/node_modules\/((?:@[^/]+\/)?[^/]+)\//g)].map(([, name]) => name);
    assert.deepEqual(named, [...new Set(inside)].sort());
    assert.equal(
      read('LICENSES.txt').match(/Permission (?:to use|is hereby granted)/g)?.length,
      named.length,
    );
  });
});

describe('the npm package', longCase, () => {
  it('has every file that its README links to, and no source map', async () => {
    const args = ['pack', '--dry-run', '--json', '--silent', '--ignore-scripts', projectRoot] as const;
    // npm 10 prints a list of packages, npm 11 an object by name.
    const [packed] = Object.values(JSON.parse(await output('npm', ...args)) as Record<string, Packed>);
    const names = packed?.files.map(({ path }) => path) ?? [];
    const readme = readFileSync(join(projectRoot, 'README.md'), 'utf8');
    const links = [...readme.matchAll(/\]\(([A-Za-z][^):#]*)/g)].map(([, to = '']) => to);
    const used = [...readme.matchAll(/^cp -r ([a-z/-]+)/gm)].map(([, from = '']) => from);
    assert.ok(links.length > 20 && used.length > 0);
    for (const path of [...links, ...used])
      assert.ok(
        names.some((name) => name === path || name.startsWith(`${path.replace(/\/$/, '')}/`)),
        path,
      );
    assert.deepEqual(
      names.filter((name) => name.endsWith('.map')),
      [],
    );
  });

  it('runs, and gives workers its library with its types', async () => {
    using dir = tempDir();
    const packed = await output(
      'npm',
      'pack',
      '--silent',
      '--ignore-scripts',
      '--pack-destination',
      dir.path,
      projectRoot,
    );
    await output('tar', '-xzf', dir.join(packed.trim()), '-C', dir.path);
    const home = dir.join('package');
    symlinkSync(join(projectRoot, 'node_modules'), join(home, 'node_modules'));
    assert.equal(await output(process.execPath, join(home, bin.writ), '--version'), `${version}\n`);
    assert.match(
      await output(process.execPath, join(home, bin.writ), 'status', '--help'),
      /^Usage: writ status/m,
    );
    const { types = '', default: path = '' } = exports['./sdk'] ?? {};
    const script = `import(${JSON.stringify(join(home, path))}).then((sdk) => console.log(Object.keys(sdk).join()))`;
    assert.equal(await output(process.execPath, '-e', script), 'connectPolicy\n');
    for (const [, name = ''] of readFileSync(join(home, types), 'utf8').matchAll(/from '(\..*)\.js'/g))
      assert.ok(existsSync(join(home, types, '..', `${name}.d.ts`)), name);
    assert.ok(!existsSync(join(home, 'dist/src/cli')));
  });
});
