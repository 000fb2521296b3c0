// Holds the sources to the architecture: who may import whom, what happens in one file only, and how files
// look. Every rule has its reason, which a failure prints.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { matchesFile } from './support/golden.js';
import { packageOf, projectRoot, readSources, type SourceFile, sourceFile } from './support/source-files.js';

const sources = readSources();

/** Fails with one line for each violation, and the reason of the rule. */
function hold(violations: readonly string[], because: string): void {
  assert.deepEqual(violations, [], `\n${violations.join('\n')}\nbecause: ${because}\n`);
}

function layerOf(path: string): string {
  return path.split('/')[0] ?? '';
}

/** What a layer may import beside itself: cli -> {agent, publisher, server} -> {trust, workers} -> platform -> core. */
const below: Readonly<Record<string, readonly string[]>> = {
  core: [],
  sdk: ['core'],
  platform: ['core'],
  trust: ['platform', 'core'],
  workers: ['platform', 'core'],
  agent: ['trust', 'workers', 'platform', 'core'],
  publisher: ['trust', 'workers', 'platform', 'core'],
  server: ['trust', 'workers', 'platform', 'core'],
  cli: ['agent', 'publisher', 'server', 'trust', 'workers', 'platform', 'core'],
};

/** Single files that a layer may import against the rule above. */
const exceptions: readonly (readonly [from: string, to: string, because: string])[] = [
  [
    'server',
    'publisher/online-signing.ts',
    'the server re-signs with the two online keys and reads no other',
  ],
];

function againstDirection(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, imports }) => {
    const layer = layerOf(path);
    const allowed = [layer, ...(below[layer] ?? [])];
    return imports
      .filter(({ file }) => file !== undefined && !allowed.includes(layerOf(file)))
      .filter(({ file }) => !exceptions.some(([from, to]) => from === layer && to === file))
      .map(({ file }) => `${path} imports ${file}`);
  });
}

describe('direction of imports', () => {
  it('is downwards only', () => {
    const because =
      'what decides must not depend on what acts, and what acts on a host must not carry secrets: ' +
      'agent and server never import the publisher';
    hold(againstDirection(sources), because);
  });

  it('knows every folder', () => {
    const unknown = sources.map(({ path }) => layerOf(path)).filter((layer) => below[layer] === undefined);
    hold(unknown, 'a folder without a place in the direction of imports is held to nothing');
  });

  it('reaches files that exist', () => {
    const known = new Set(sources.map(({ path }) => path));
    const missing = sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ file }) => file !== undefined && !known.has(file))
        .map(({ file }) => `${path} -> ${file}`),
    );
    hold(missing, 'this test reads imports as text, and must not misread them');
  });

  it('can be read as text', () => {
    const hidden = sources
      .filter(({ code }) => /\bimport\s*\(\s*[^'"\s]|\brequire\s*\(|\bcreateRequire\b/.test(code))
      .map(({ path }) => path);
    hold(hidden, 'an import by a computed name is held to no rule');
  });
});

interface Confined {
  readonly what: string;
  readonly used: (file: SourceFile) => boolean;
  /** Paths below src that may. */
  readonly only: RegExp;
  readonly because: string;
}

function importing(name: RegExp): (file: SourceFile) => boolean {
  return ({ imports }) => imports.some(({ specifier }) => name.test(specifier));
}

function saying(pattern: RegExp): (file: SourceFile) => boolean {
  return ({ code }) => pattern.test(code);
}

/** Names under which a file uses node:fs whole, as `fs`. */
function namespacesOfFs({ imports }: SourceFile): string[] {
  return imports
    .filter(({ specifier }) => /^node:fs\b/.test(specifier))
    .flatMap(({ names }) => /\*\s+as\s+(\w+)/.exec(names)?.[1] ?? []);
}

/** True when a function of node:fs is called or imported by this name, in any of its three forms. */
function usingOfFs(names: string): (file: SourceFile) => boolean {
  const named = new RegExp(`\\b(?:${names})(?:Sync)?\\b`);
  return (file) => {
    const imported = file.imports.some(
      (line) => /^node:fs\b/.test(line.specifier) && named.test(line.names.replace(/\btype\s+\w+/g, '')),
    );
    const spaces = ['fsp', ...namespacesOfFs(file)].join('|');
    const call = `(?:(?<![.\\w])(?:${spaces})|\\bpromises)\\s*\\.\\s*(?:${names})(?:Sync)?\\b`;
    return imported || new RegExp(call).test(file.code);
  };
}

const renamesOrFlushes = usingOfFs('rename|symlink|link|fsync|fdatasync');

const changesDisk = usingOfFs(
  'write\\w*|appendFile|mkdir|mkdtemp|rm|rmdir|unlink|[fl]?utimes|[fl]?chmod|[fl]?chown|f?truncate|copyFile|cp' +
    '|createWriteStream',
);

/** By a flag of its own, or by a string, whose meaning this test cannot see. */
function opensForWriting({ code }: SourceFile): boolean {
  return (
    /\bO_(?:WRONLY|RDWR|CREAT|EXCL|APPEND|TRUNC)\b/.test(code) ||
    /\bopen(?:Sync)?\s*\([^,;]*,\s*(?:''|`)/.test(code)
  );
}

const confined: readonly Confined[] = [
  {
    what: 'rename, symlink, link and fsync',
    used: renamesOrFlushes,
    only: /^platform\/durable-\w+\.ts$/,
    because:
      'the order of durable operations is proven in one place; a rename elsewhere has no label to crash at',
  },
  {
    what: 'changing the disk of a host',
    used: (file) =>
      /^(?:agent|trust|workers|platform|sdk)\//.test(file.path) &&
      (changesDisk(file) || opensForWriting(file)),
    only: /^platform\/(durable-\w+|control-group)\.ts$/,
    because:
      'the crash matrix is made of the labels of durable-fs: what changes the disk past it is killed and failed by no test; control groups are on no disk',
  },
  {
    what: 'the system calls of durable-fs',
    used: ({ imports }) =>
      imports.some(({ file = '' }) => /^platform\/durable-(?:calls|remove)\.ts$/.test(file)),
    only: /^platform\/durable-(?:fs|calls)\.ts$/,
    because: 'they carry no label',
  },
  {
    what: 'starting programs',
    used: importing(/^node:child_process$/),
    only: /^platform\/run-command\.ts$/,
    because:
      'only there do programs get a cleared environment, a deadline, bounded output and a killed group',
  },
  {
    what: 'undici',
    used: importing(/^undici/),
    only: /^platform\/http[^/]*\.ts$/,
    because: 'only there do requests get deadlines, bounds and refused redirects',
  },
  {
    what: 'fetch and clients of node:http',
    used: saying(/(?<![.\w])fetch\s*\(\s*[`'"]|\bhttps?\.(?:get|request)\b|\bglobalThis\.fetch\b/),
    only: /^platform\/http[^/]*\.ts$/,
    because: 'a second way to the network would have none of the bounds of the first',
  },
  {
    what: 'tar',
    used: importing(/^tar(?:\/|$)/),
    only: /^publisher\/build-bundle[^/]*\.ts$/,
    because: 'an archive is made in one deterministic way; hosts read it with a strict reader of their own',
  },
  {
    what: 'tweetnacl',
    used: importing(/^tweetnacl/),
    only: /^publisher\//,
    because:
      'secrets are used in one folder; hosts verify with node:crypto, which refuses malleable signatures',
  },
  {
    what: 'worker threads',
    used: importing(/^node:worker_threads$/),
    only: /^agent\/parse-check[^/]*\.ts$/,
    because: 'only parsers of others need a thread to bound and kill; elsewhere threads would hide the order',
  },
  {
    what: 'pino',
    used: importing(/^pino/),
    only: /^platform\/log\.ts$/,
    because: 'every line has the same fields and is written synchronously',
  },
  {
    what: 'fastify',
    used: importing(/^@?fastify/),
    only: /^server\//,
    because: 'a host needs no HTTP server',
  },
  {
    what: 'prom-client',
    used: importing(/^prom-client/),
    only: /^platform\/metrics\.ts$/,
    because: 'its successor needs another Node; one file will change',
  },
  {
    what: 'commander and prompts',
    used: importing(/^(?:commander|@inquirer\/)/),
    only: /^cli\//,
    because: 'only the command line talks to people',
  },
  {
    what: 'console and writing to the standard streams',
    used: saying(/\bconsole\s*\.|\bprocess\s*\.\s*(?:stdout|stderr)\s*\.\s*write\b/),
    only: /^cli\/render\.ts$/,
    because: 'stdout carries answers that scripts read; the log goes through pino to stderr',
  },
  {
    what: 'the clock and timers',
    used: ({ code, imports }) =>
      /\bDate\s*\.\s*now\b|\bnew\s+Date\s*\(\s*\)|\bperformance\s*\.\s*now\b/.test(code) ||
      /\bset(?:Timeout|Interval)\s*\(|\bAbortSignal\s*\.\s*timeout\b|\bhrtime\b/.test(code) ||
      imports.some(({ specifier }) => /^node:(?:timers|perf_hooks)/.test(specifier)),
    only: /^(?:platform|sdk)\//,
    because: 'time comes through Clock, so that a test can move it; the sdk has a delay of its own to inject',
  },
  {
    what: 'randomness in core, trust and workers',
    used: ({ path, code }) =>
      /^(?:core|trust|workers)\//.test(path) &&
      /\bMath\s*\.\s*random\b|\brandom(?:Bytes|UUID|Int)\b/.test(code),
    only: /^$/,
    because: 'what decides gives the same verdict twice',
  },
];

describe('what happens in one place only', () => {
  for (const { what, used, only, because } of confined) {
    it(what, () => {
      const elsewhere = sources.filter((file) => used(file) && !only.test(file.path));
      hold(
        elsewhere.map(({ path }) => path),
        because,
      );
    });
  }
});

describe('core', () => {
  const allowed = new Set(['ajv', 'yaml', 'picomatch', 'node:crypto']);

  it('imports nothing that reads, writes, waits or asks', () => {
    const foreign = sources
      .filter(({ path }) => layerOf(path) === 'core')
      .flatMap(({ path, imports }) => imports.map((line) => ({ path, ...line })))
      .filter(({ file, specifier }) => file === undefined && !allowed.has(packageOf(specifier)))
      .map(({ path, specifier }) => `${path} imports ${specifier}`);
    hold(foreign, 'a verdict is a function of its arguments, and is tested without a disk or a network');
  });

  it('does not ask the process', () => {
    const asking = sources.filter(
      ({ path, code }) => layerOf(path) === 'core' && /\bprocess\s*\./.test(code),
    );
    hold(
      asking.map(({ path }) => path),
      'environment and platform are arguments, or a verdict depends on where it is given',
    );
  });
});

describe('files', () => {
  it('open with a comment of 1 to 8 lines that says what they own', () => {
    const bare = sources.filter(({ text }) => {
      const lines = text.replace(/^#!.*\n/, '').split('\n');
      const comment = lines.findIndex((line) => !line.startsWith('//'));
      return comment < 1 || comment > 8;
    });
    hold(
      bare.map(({ path }) => path),
      'a reader learns from the first lines whether this is the file to read',
    );
  });

  it('have at most 300 lines', () => {
    const long = sources
      .filter(({ path, text }) => path !== 'core/error-codes.ts' && text.trimEnd().split('\n').length > 300)
      .map(({ path }) => path);
    hold(long, 'a file has one subject');
  });

  it('point at documents that are there', () => {
    const dangling = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/(?:[\w/-]+\/)?[\w-]+\.md\b/g)]
        .filter(([name]) => !existsSync(join(projectRoot, name)))
        .map(([name]) => `${path}: ${name}`),
    );
    hold(dangling, 'a reader who is sent somewhere must arrive');
  });

  it('leave nothing for later', () => {
    const marked = sources.filter(({ text }) => /\b(?:TODO|FIXME|XXX)\b/.test(text));
    hold(
      marked.map(({ path }) => path),
      'a promise in a comment is kept by nobody',
    );
  });
});

/** Names of every package that a production install brings, from the lock file. */
function installedPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; peer?: boolean }>;
  };
  const names = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
  return [...new Set(names)].sort();
}

function packagesOf(layer: string): string[] {
  const names = sources
    .filter(({ path }) => layerOf(path) === layer)
    .flatMap(({ imports }) => imports)
    .filter(({ file, specifier }) => file === undefined && !specifier.startsWith('node:'))
    .map(({ specifier }) => packageOf(specifier));
  return [...new Set(names)].sort();
}

describe('dependencies', () => {
  it('are those of the list, by folder and with all that they bring', () => {
    const folders = Object.keys(below).map((layer) => `${layer}: ${packagesOf(layer).join(' ') || '-'}`);
    const lines = [
      '# packages that each folder imports',
      ...folders,
      '',
      '# packages that an install brings',
    ];
    matchesFile('test/golden/dependencies.txt', `${[...lines, ...installedPackages()].join('\n')}\n`);
  });

  it('are declared where they are used', () => {
    const { dependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    const undeclared = Object.keys(below)
      .flatMap(packagesOf)
      .filter((name) => dependencies[name] === undefined);
    hold(undeclared, 'a package that only another one brings can vanish with its next version');
  });
});

describe('the reader of imports', () => {
  const read = (text: string, path = 'agent/x.ts'): string[] =>
    sourceFile(path, text).imports.map(({ specifier, file }) => file ?? specifier);

  it('sees every form of import', () => {
    assert.deepEqual(read("import { a } from '../core/a.js';"), ['core/a.ts']);
    assert.deepEqual(read("import {\n  a,\n  type B,\n} from './b.js';"), ['agent/b.ts']);
    assert.deepEqual(read("import type { A } from 'undici';"), ['undici']);
    assert.deepEqual(read("import * as fs from 'node:fs';"), ['node:fs']);
    assert.deepEqual(read("export type { Logger } from 'pino';"), ['pino']);
    assert.deepEqual(read("import './effect.js';"), ['agent/effect.ts']);
    assert.deepEqual(read("const { x } = await import('../cli/x.js');"), ['cli/x.ts']);
    assert.deepEqual(read("import a from 'a';\nimport b from 'b';"), ['a', 'b']);
  });

  it('sees no import in a comment', () => {
    assert.deepEqual(read("// import { a } from 'tar';\n/* import 'b'; */"), []);
  });

  it('sees code in templates, and none in strings and comments', () => {
    const { code } = sourceFile('agent/x.ts', "const a = 'Date.now()'; // Date.now()\nconst b = `run()`;");
    assert.equal(code.includes('Date.now'), false);
    assert.equal(code.includes('run()'), true);
  });
});

describe('the rules themselves', () => {
  const wholeFs = "import * as fs from 'node:fs'; ";
  const fires = (what: string, path: string, text: string): boolean => {
    const rule = confined.find((one) => one.what === what) ?? assert.fail(`no rule ${what}`);
    return rule.used(sourceFile(path, text)) && !rule.only.test(path);
  };

  it('see an import against the direction', () => {
    const upward = sourceFile('agent/x.ts', "import { sign } from '../publisher/keys.js';");
    assert.deepEqual(againstDirection([upward]), ['agent/x.ts imports publisher/keys.ts']);
    const online = sourceFile('server/x.ts', "import { sign } from '../publisher/online-signing.js';");
    assert.deepEqual(againstDirection([online]), []);
    const sdk = sourceFile('sdk/x.ts', "import type { Clock } from '../platform/clock.js';");
    assert.deepEqual(againstDirection([sdk]), ['sdk/x.ts imports platform/clock.ts']);
  });

  const samples: readonly (readonly [what: string, bad: string, good: string])[] = [
    ['rename, symlink, link and fsync', `${wholeFs}fs.renameSync(a, b);`, "durable.rename('op', a, b);"],
    ['rename, symlink, link and fsync', "import { rename } from 'node:fs/promises';", 'fs.unlinkSync(a);'],
    ['rename, symlink, link and fsync', 'fs.promises.symlink(a, b);', 'fs.readlinkSync(a);'],
    ['changing the disk of a host', `${wholeFs}fs.mkdirSync(a);`, 'fs.writeFile(op, path);'],
    ['changing the disk of a host', `${wholeFs}fs.utimesSync(a, b, c);`, `${wholeFs}fs.statfsSync(a);`],
    [
      'changing the disk of a host',
      "import { rmSync } from 'node:fs';",
      "import { readSync } from 'node:fs';",
    ],
    [
      'changing the disk of a host',
      "import { chmod } from 'node:fs/promises';",
      'options.fs.removeFile(op, a);',
    ],
    ['changing the disk of a host', 'openSync(p, constants.O_RDWR);', 'openSync(p, constants.O_RDONLY);'],
    ['changing the disk of a host', "fs.openSync(p, 'wx', 0o600);", 'options.tree.open(file);'],
    ['starting programs', "import { spawn } from 'node:child_process';", "import 'node:fs';"],
    ['undici', "const u = await import('undici');", "const text = 'undici';"],
    ['tar', "import { Parser } from 'tar';", "import { x } from './tar-names.js';"],
    ['tweetnacl', "import nacl from 'tweetnacl';", '// tweetnacl makes the keys'],
    ['the clock and timers', 'const t = new Date();', 'const t = new Date(ms).toISOString();'],
    ['the clock and timers', 'const t = Date.now();', 'const t = clock.nowMs();'],
    ['the clock and timers', 'setTimeout(f, 1);', 'clearTimeout(timer);'],
    ['the clock and timers', "import { setTimeout } from 'node:timers/promises';", 'clock.sleep(5);'],
    ['console and writing to the standard streams', 'console.log(1);', 'log.info(1);'],
    ['console and writing to the standard streams', 'process.stderr.write(x);', 'process.stderr.isTTY;'],
  ];
  for (const [what, bad, good] of samples) {
    it(`see "${bad}" and not "${good}" (${what})`, () => {
      assert.equal(fires(what, 'agent/x.ts', bad), true);
      assert.equal(fires(what, 'agent/x.ts', good), false);
    });
  }
});
