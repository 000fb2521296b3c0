import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CommandDefinition, CommandEntry } from '../../../../src/cli/console/command.js';
import {
  durationFlag,
  nameFlag,
  newSerialFlag,
  numberFlag,
  serialFlag,
} from '../../../../src/cli/console/flag-values.js';
import { besides, optional, preset, required } from '../../../../src/cli/console/flags.js';
import { parseCommandLine } from '../../../../src/cli/console/program.js';
import type { WritError } from '../../../../src/core/errors.js';

const surroundings = { version: '1.2.3', env: {}, stdout: process.stdout };

const definition: CommandDefinition = {
  examples: ['writ paint wall', 'writ paint wall --coats 2'],
  exitCodes: ['0  painted'],
  args: [
    ['<surface>', 'what to paint'],
    ['[tool]', 'brush or roller'],
  ],
  flags: {
    coats: preset('--coats <n>', 'coats', 1, numberFlag(1, 5)),
    dryFor: optional('--dry-for <duration>', 'time between coats', durationFlag),
    paintName: optional('--paint-name <name>', 'paint', nameFlag),
  },
  run: () => Promise.reject(new Error('not run by the parser')),
};

function table(): { readonly entries: CommandEntry[]; readonly loaded: string[] } {
  const loaded: string[] = [];
  const load = (name: string) => () => {
    loaded.push(name);
    return Promise.resolve({ command: definition });
  };
  const names = ['paint', 'sand', 'repo status', 'repo check'];
  return { entries: names.map((name) => ({ name, summary: `does ${name}`, load: load(name) })), loaded };
}

async function parse(...argv: string[]) {
  return parseIn({}, ...argv);
}

function parseIn(env: Readonly<Record<string, string>>, ...argv: string[]) {
  return parseCommandLine(argv, table().entries, { ...surroundings, env });
}

describe('a flag for a serial', () => {
  it('accepts each serial that a release may have, and for a new release up to the bound', () => {
    for (const text of ['1', '1000000000000']) assert.equal(newSerialFlag(text), Number(text));
    for (const text of ['0', '1000000000001'])
      assert.throws(() => newSerialFlag(text), /1 to 1000000000000\./);
    assert.equal(serialFlag('9007199254740991'), Number.MAX_SAFE_INTEGER);
    assert.throws(() => serialFlag('9007199254740992'), /from 1 to 9007199254740991/);
  });
});

describe('parseCommandLine', () => {
  it('passes the parsed arguments and flags to the command', async () => {
    const found = await parse('paint', 'wall', '--coats', '2', '--dry-for', '90m', '--json');
    assert.equal(found.kind, 'command');
    if (found.kind !== 'command') return;
    assert.equal(found.name, 'paint');
    assert.deepEqual(found.args, ['wall', undefined]);
    assert.deepEqual(
      { ...found.flags },
      { coats: 2, dryFor: 5_400_000, json: true, color: 'auto', input: true },
    );
  });

  it('imports only the module of the typed command', async () => {
    const { entries, loaded } = table();
    await parseCommandLine(['repo', 'status', 'x'], entries, surroundings);
    assert.deepEqual(loaded, ['repo status']);
    await parseCommandLine(['--help'], entries, surroundings);
    assert.deepEqual(loaded, ['repo status']);
  });

  it('reads a flag from its environment variable, and prefers the typed flag', async () => {
    const env = { WRIT_PAINT_PAINT_NAME: 'ochre' };
    const fromEnvironment = await parseIn(env, 'paint', 'wall');
    const fromFlag = await parseIn(env, 'paint', 'wall', '--paint-name', 'umber');
    assert.equal(fromEnvironment.kind === 'command' && paintName(fromEnvironment.flags), 'ochre');
    assert.equal(fromFlag.kind === 'command' && paintName(fromFlag.flags), 'umber');
  });

  it('has a variable of its own for each command, also where two commands share the flag', async () => {
    const env = { WRIT_REPO_STATUS_PAINT_NAME: 'ochre' };
    for (const [name, expected] of [
      ['repo status', 'ochre'],
      ['paint', undefined],
      ['repo check', undefined],
    ] as const) {
      const found = await parseIn(env, ...name.split(' '), 'wall');
      assert.equal(found.kind === 'command' && paintName(found.flags), expected, name);
    }
  });

  it('refuses a variable of an older version if the command would have read it, and names the new one', async () => {
    const env = { WRIT_PAINT_NAME: 'ochre' };
    await assert.rejects(parseIn(env, 'paint', 'wall'), (error: WritError) => {
      assert.equal(error.code, 'USAGE');
      assert.match(error.message, /^WRIT_PAINT_NAME is set/);
      assert.match(error.hint, /WRIT_PAINT_PAINT_NAME, or give --paint-name/);
      return true;
    });
    await assert.rejects(parseIn({ WRIT_PAINT_NAME: '' }, 'sand', 'wall'), { code: 'USAGE' });
    for (const more of [[], ['--paint-name', 'umber']] as const) {
      const given = more.length === 0 ? { ...env, WRIT_PAINT_PAINT_NAME: 'umber' } : env;
      const found = await parseIn(given, 'paint', 'wall', ...more);
      assert.equal(
        found.kind === 'command' && paintName(found.flags),
        'umber',
        'no command would have read it',
      );
    }
    assert.equal((await parseIn(env, 'paint', '--help')).kind, 'text');
    assert.equal((await parseIn({ WRIT_PAINT: 'x', WRIT_NAME: 'x' }, 'paint', 'wall')).kind, 'command');
  });

  it('names the new variable of a required flag, and not only the flag', async () => {
    const flags = { wall: required('--wall <dir>', 'which') };
    const load = () => Promise.resolve({ command: { ...definition, flags } });
    const entries = [{ name: 'paint', summary: 'paints', load }];
    const env = { WRIT_WALL: 'north' };
    const refused = parseCommandLine(['paint', 'x'], entries, { ...surroundings, env });
    const hint = 'Set WRIT_PAINT_WALL, or give --wall; unset WRIT_WALL. See writ help environment.';
    await assert.rejects(refused, { code: 'USAGE', hint });
  });

  it('reads no variable of a flag if an alternative was typed, and rejects two variables by their names', async () => {
    const flags = {
      line: besides(optional('--line <url>', 'one source'), 'gate'),
      gate: besides(optional('--gate <dir>', 'another source'), 'line'),
    };
    const load = () => Promise.resolve({ command: { ...definition, flags } });
    const entries = [{ name: 'paint', summary: 'paints', load }];
    const flagsOf = async (env: Readonly<Record<string, string>>, ...typed: string[]) => {
      const found = await parseCommandLine(['paint', 'x', ...typed], entries, { ...surroundings, env });
      const { line, gate } = (found.kind === 'command' ? found.flags : {}) as Record<string, unknown>;
      return [line, gate];
    };
    const one = { WRIT_PAINT_LINE: 'a' };
    const both = { ...one, WRIT_PAINT_GATE: 'b' };
    assert.deepEqual(await flagsOf(one), ['a', undefined]);
    assert.deepEqual(await flagsOf(one, '--gate', 'c'), [undefined, 'c']);
    assert.deepEqual(await flagsOf(both, '--line', 'c'), ['c', undefined]);
    assert.deepEqual(await flagsOf({}, '--line', 'c', '--gate', 'd'), ['c', 'd']);
    const message = 'WRIT_PAINT_LINE and WRIT_PAINT_GATE are both set: unset one of them';
    await assert.rejects(flagsOf(both), { code: 'USAGE', message });
  });

  it('counts a variable that is empty as not set', async () => {
    const found = await parseIn({ WRIT_PAINT_PAINT_NAME: '' }, 'paint', 'wall');
    assert.ok(found.kind === 'command' && !('paintName' in found.flags));
  });

  it('rejects an empty value of a flag, also of one that accepts any text', async () => {
    const text: CommandDefinition = { ...definition, flags: { wall: optional('--wall <file>', 'file') } };
    const entries = [
      { name: 'paint', summary: 'paints', load: () => Promise.resolve({ command: text }) },
    ] satisfies CommandEntry[];
    await assert.rejects(parseCommandLine(['paint', 'x', '--wall', ''], entries, surroundings), {
      code: 'USAGE',
      message: "option '--wall <file>' argument '' is invalid. It is empty.",
    });
  });

  it('reads only the given environment', async () => {
    process.env['WRIT_PAINT_PAINT_NAME'] = 'ochre';
    try {
      const found = await parse('paint', 'wall');
      assert.equal(found.kind === 'command' && paintName(found.flags), undefined);
    } finally {
      delete process.env['WRIT_PAINT_PAINT_NAME'];
    }
  });

  for (const argv of [
    ['paint'],
    ['paint', 'wall', '--coats', '9'],
    ['paint', 'wall', '--coats', '1.5'],
    ['paint', 'wall', '--dry-for', '90'],
    ['paint', 'wall', '--dry-for', '0s'],
    ['paint', 'wall', '--paint-name', '../etc'],
    ['paint', 'wall', '--unknown'],
    ['paint', 'wall', 'brush', 'extra'],
    ['paint', 'wall', '--color', 'sometimes'],
    ['pain'],
    ['repo', 'stat'],
    ['repo'],
    ['--nonsense'],
    [],
  ]) {
    it(`refuses: writ ${argv.join(' ')}`, async () => {
      await assert.rejects(parse(...argv), { code: 'USAGE' });
    });
  }

  it('names the commands of a group that was typed alone, and no others', async () => {
    const alone = {
      code: 'USAGE',
      message: 'writ repo needs a command: status, check',
      hint: 'Run writ repo --help.',
    };
    await assert.rejects(parse('repo'), alone);
  });

  it('prints the first steps without arguments', async () => {
    const hint = /^On a host begin with `writ status`, to sign policy with `writ init`\. .*`writ --help`\.$/;
    await assert.rejects(parse(), { code: 'USAGE', message: 'writ needs a command', hint });
  });

  it('names the flags of a command after an unknown flag', async () => {
    const hint = /^The flags of writ paint: --coats --dry-for --paint-name --json /;
    await assert.rejects(parse('paint', 'wall', '--now'), { message: "unknown option '--now'", hint });
  });

  it('names a mistyped flag, and not the missing required one', async () => {
    const flags = { wall: required('--wall <dir>', 'which') };
    const load = () => Promise.resolve({ command: { ...definition, flags } });
    const typed = (...argv: string[]) =>
      parseCommandLine(argv, [{ name: 'paint', summary: 'paints', load }], surroundings);
    const meant = { message: "unknown option '--wlal'", hint: 'Did you mean --wall?' };
    await assert.rejects(typed('paint', 'x', '--wlal', 'north'), meant);
    await assert.rejects(typed('paint', 'x', '--wlal=north', '--json'), meant);
    await assert.rejects(typed('paint', 'x', '--json'), { message: /^required option '--wall/ });
  });

  it('suggests the most similar command', async () => {
    await assert.rejects(parse('pain'), { code: 'USAGE', hint: 'Did you mean paint?' });
  });

  it('shows examples first, flags with their variables, and exit codes', async () => {
    for (const argv of [
      ['paint', '--help'],
      ['help', 'paint'],
    ]) {
      const help = await parse(...argv);
      assert.equal(help.kind, 'text');
      if (help.kind !== 'text') return;
      assert.ok(help.text.startsWith('Examples:\n  $ writ paint wall\n'));
      assert.ok(help.text.includes('WRIT_PAINT_DRY_FOR'));
      assert.ok(help.text.endsWith('Exit codes:\n  0  painted\n'));
    }
  });

  it('prints the version', async () => {
    assert.deepEqual(await parse('--version'), { kind: 'text', text: '1.2.3\n' });
  });
});

function paintName(flags: object): unknown {
  return 'paintName' in flags ? flags.paintName : undefined;
}
