// The environment variables of all flags: derived from the table, each with one meaning, and known if a file of Writ names one.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { environmentName, formerName, namesOfPrograms } from '../../src/cli/console/flag-environment.js';
import { commonFlags } from '../../src/cli/console/flags.js';
import { topicText } from '../../src/cli/console/help-topics.js';
import { commands } from '../../src/cli/run.js';
import { projectRoot } from '../kit/sources/source-files.js';

interface Row {
  readonly command: string;
  readonly flag: string;
  readonly name: string | undefined;
  readonly former: string | undefined;
}

const shared = /^WRIT_(?:CONFIG|COLOR|FLEET_(?:URL|TOKEN_FILE|CA|STORE|STORE_FILE))$/;
async function allRows(): Promise<readonly Row[]> {
  const all = commands.map(async ({ name: command, load }): Promise<Row[]> => {
    const { flags } = (await load()).command;
    const valued = Object.values({ ...flags, ...commonFlags }).filter((one) => one.required || one.optional);
    return valued.map((option) => ({
      command,
      flag: option.long ?? '',
      name: environmentName(command, option),
      former: formerName(command, option),
    }));
  });
  return (await Promise.all(all)).flat();
}

const rows = await allRows();

describe('the variable of a flag', () => {
  it('is WRIT_<COMMAND>_<FLAG>, except for the few that all commands share', () => {
    assert.ok(rows.length > 150);
    for (const { command, flag, name } of rows) {
      const upperName = `${command} ${flag.slice(2)}`.replaceAll(/[ -]/g, '_').toUpperCase();
      if (command === 'sign' && flag === '--role') assert.equal(name, undefined);
      else if (!shared.test(name ?? '')) assert.equal(name, `WRIT_${upperName}`);
    }
    const withdraw = rows.find((row) => row.command === 'withdraw' && row.flag === '--to');
    assert.deepEqual([withdraw?.name, withdraw?.former], ['WRIT_WITHDRAW_TO', 'WRIT_TO']);
  });

  it('belongs to one flag of one command', () => {
    const own = rows.map(({ name }) => name).filter((name) => name !== undefined && !shared.test(name));
    assert.equal(new Set(own).size, own.length);
  });

  it('has one meaning: no program of Writ receives it, and no older version read it', () => {
    const former = new Set(rows.map((row) => row.former));
    for (const { name } of rows.filter((row) => row.name !== undefined)) {
      assert.ok(!namesOfPrograms.has(name ?? ''), name);
      assert.ok(!former.has(name), `${name} would be refused`);
    }
  });

  it('of fleet serve differs from its former name and from the former variable of repositories', () => {
    const ofServe = rows.filter((row) => row.command === 'fleet serve');
    const former = (flag: string) => ofServe.find((row) => row.flag === flag)?.former;
    assert.equal(former('--repository'), 'WRIT_FLEET_REPOSITORY');
    assert.equal(former('--listen'), 'WRIT_LISTEN');
    assert.equal(former('--store'), undefined);
  });
});

const filesBelow = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((path) => join(directory, path));

const documents = () => [
  ...filesBelow(join(projectRoot, 'packaging')).filter((path) => /\.(?:env|service)$/.test(path)),
  ...filesBelow(join(projectRoot, 'docs')).filter((path) => path.endsWith('.md') && !path.includes('/adr/')),
  join(projectRoot, 'README.md'),
];

/** Variables without a flag: passphrases, variables that Writ passes to programs, and those of other tools. */
const others =
  /^WRIT_(?:(?:NEW_)?PASSPHRASE|DOCS_URL|HEALTH_URL|POLICY|SIGN_(?:FILE|ROLE|KEYIDS)|(?:GENERATION|BUNDLE|SCRATCH)_DIR|GENERATION|WORKER|STALE_[A-Z_]*|MAX_STALE_SECONDS|TEST_[A-Z_]+)$/;

describe('a file that names a variable', () => {
  it('names a variable that a command reads, in units, packages and pages', () => {
    const known = new Set(rows.map(({ name }) => name));
    const former = new Set(rows.map((row) => row.former));
    // The part about changes that an upgrade requires.
    const begins = (name: string) =>
      name.endsWith('_') && [...known].some((whole) => whole?.startsWith(name));
    const mayBe = (path: string, name: string) =>
      path.endsWith('/docs/install.md') && (former.has(name) || begins(name));
    let seen = 0;
    for (const path of documents())
      for (const [name] of readFileSync(path, 'utf8').matchAll(/\bWRIT_[A-Z][A-Z_]*/g)) {
        seen += 1;
        assert.ok(known.has(name) || others.test(name) || mayBe(path, name), `${path}: ${name}`);
      }
    assert.ok(seen > 20, 'they were read');
  });

  it('has a help topic with examples from the table', () => {
    const text = topicText('environment') ?? '';
    for (const [, name, typed] of text.matchAll(/(WRIT_[A-Z_]+) for writ ([a-z -]+)/g)) {
      const [command, flag] = (typed ?? '').split(' --');
      assert.ok(rows.some((row) => row.command === command && row.flag === `--${flag}` && row.name === name));
    }
    for (const { name } of rows.filter((row) => shared.test(row.name ?? '')))
      assert.ok(text.includes(name ?? '-'));
  });
});
