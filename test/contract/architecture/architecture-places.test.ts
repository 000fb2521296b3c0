// Operations that only one place of the sources may contain. Each of these rules is tested by a sample that breaks it and one
// that does not.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readSources, sourceFile } from '../../kit/sources/source-files.js';
import { confined } from './confined.js';
import { hold } from './layers.js';

const sources = readSources();

describe('an operation of one place', () => {
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

describe('the rules themselves', () => {
  const wholeFs = "import * as fs from 'node:fs'; ";
  const fires = (what: string, path: string, text: string): boolean => {
    const rule = confined.find((one) => one.what === what) ?? assert.fail(`no rule ${what}`);
    return rule.used(sourceFile(path, text)) && !rule.only.test(path);
  };

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
    ['reading a file without a bound', `${wholeFs}fs.readFileSync(a, 'utf8');`, 'readSmallFile(a, bound);'],
    ['reading a file without a bound', "import { openSync } from 'node:fs';", `${wholeFs}fs.lstatSync(a);`],
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
    it(`reports "${bad}" and not "${good}" (${what})`, () => {
      assert.equal(fires(what, 'agent/x.ts', bad), true);
      assert.equal(fires(what, 'agent/x.ts', good), false);
    });
  }
});
