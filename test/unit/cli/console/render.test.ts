import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import type { Answer } from '../../../../src/cli/console/command.js';
import { createRenderer, type RenderOptions } from '../../../../src/cli/console/render.js';
import { policyStands } from '../../../../src/core/cycle/policy-stands.js';
import { WritError } from '../../../../src/core/errors.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

interface Screen {
  readonly stream: NodeJS.WriteStream;
  text(): string;
}

function screen(terminal?: { readonly columns: number; readonly rows?: number }): Screen {
  const stream = new PassThrough();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const fake = Object.assign(stream, terminal === undefined ? {} : { isTTY: true, ...terminal });
  return { stream: fake as unknown as NodeJS.WriteStream, text: () => Buffer.concat(chunks).toString() };
}

const plain: RenderOptions = { json: false, quiet: false, verbose: false, color: 'never' };

function rendered(
  options: Partial<RenderOptions> = {},
  terminal?: { readonly columns: number; readonly rows?: number },
  env: Readonly<Record<string, string>> = {},
) {
  const out = screen(terminal);
  const err = screen(terminal);
  const renderer = createRenderer(
    { ...plain, ...options },
    { stdout: out.stream, stderr: err.stream, env },
    'pull.result',
  );
  return { renderer, out, err };
}

const answer: Answer = {
  type: 'pull.result',
  outcome: 'rolled-back',
  exitCode: 5,
  details: { changed: false },
  lines: ['ROLLED BACK generation 17', '  text: \u001b[31mred'],
  next: 'writ history',
};

describe('answers', () => {
  it('go to stdout, the next step last, with control characters escaped', () => {
    const { renderer, out, err } = rendered();
    renderer.answer(answer);
    assert.equal(out.text(), 'ROLLED BACK generation 17\n  text: \\u{1b}[31mred\nNext: writ history\n');
    assert.equal(err.text(), '');
  });

  it('with --quiet are complete, or their first line and secrets, or empty, as their command decides', () => {
    const shown = (quiet?: 'nothing' | 'first-line'): string => {
      const { renderer, out } = rendered({ quiet: true });
      renderer.answer({ ...answer, kept: ['Passphrase  abc'] }, quiet);
      return out.text();
    };
    assert.equal(shown('nothing'), 'Passphrase  abc\n');
    assert.equal(shown('first-line'), 'ROLLED BACK generation 17\nPassphrase  abc\n');
    assert.ok(shown().endsWith('Next: writ history\n'));
    const { renderer, out } = rendered({ quiet: true, json: true });
    renderer.answer(answer, 'nothing');
    assert.equal(JSON.parse(out.text()).next, 'writ history', 'a script that asked for JSON gets it');
  });

  it('are one JSON object with --json', () => {
    const { renderer, out } = rendered({ json: true });
    renderer.answer(answer);
    assert.equal(
      out.text(),
      '{"schema":1,"type":"pull.result","outcome":"rolled-back","exitCode":5,"changed":false,"next":"writ history"}\n',
    );
  });

  it('that change are one line for each change in a pipe', () => {
    const { renderer, out } = rendered();
    renderer.redraw(answer, ['12:00', 'ROLLED BACK', 'by \t a tab']);
    renderer.redraw(answer);
    assert.equal(out.text(), '12:00\tROLLED BACK\tby \\u{9} a tab\n');
  });

  it('that change are one object for each change with --json', () => {
    const { renderer, out } = rendered({ json: true }, { columns: 80 });
    renderer.redraw(answer, ['12:00']);
    renderer.redraw(answer);
    assert.equal(out.text().split('\n').length, 2);
    assert.equal(JSON.parse(out.text()).outcome, 'rolled-back');
  });

  it('that change replace the previous one on a terminal, also when only ages changed', () => {
    const { renderer, out } = rendered({}, { columns: 80 });
    renderer.redraw(answer, ['12:00']);
    renderer.redraw(answer);
    const block = 'ROLLED BACK generation 17\n  text: \\u{1b}[31mred\nNext: writ history\n';
    assert.equal(out.text(), `\u001b[H\u001b[2J${block}\u001b[H\u001b[2J${block}`);
  });

  it('contain no control character of a terminal as JSON', () => {
    const { renderer, out } = rendered({ json: true });
    const text = '\u001b[31m \u009b31m \u007f \u202e \u2028 \u00e4';
    renderer.answer({ ...answer, details: { text } });
    assert.doesNotMatch(out.text().trimEnd(), /[\p{Cc}\u202e\u2028]/u);
    assert.equal(JSON.parse(out.text()).text, text);
  });

  for (const [level, exitCode, color] of [
    ['ok', 1, 32],
    ['warning', 0, 33],
    ['critical', 0, 31],
    [undefined, 8, 33],
  ] as const) {
    it(`colour ${level ?? 'no level'} with exit code ${exitCode} as ${color}`, () => {
      const { renderer, out } = rendered({ color: 'always' });
      renderer.answer({ ...answer, exitCode, ...(level === undefined ? {} : { level }) });
      assert.ok(out.text().startsWith(`\u001b[${color}mROLLED BACK`), out.text());
    });
  }

  it('that change fit the terminal, and count the omitted lines', () => {
    const lines = ['ACTIVE  日本日本日本日本', ...Array.from({ length: 200 }, (_, index) => `  ${index}`)];
    const drawn = (rows: number, count: number): string[] => {
      const { renderer, out } = rendered({}, { columns: 12, rows });
      renderer.redraw({ ...answer, lines: lines.slice(0, count) }, ['x']);
      return out.text().slice('\u001b[H\u001b[2J'.length).trimEnd().split('\n');
    };
    const cut = ['ACTIVE  日', '  0', '  1', '(199 more lines)'];
    assert.deepEqual(drawn(5, 201), cut);
    assert.deepEqual(drawn(5, 3), ['ACTIVE  日', '  0', '  1', 'Next: writ']);
    assert.deepEqual(drawn(4, 3), ['ACTIVE  日', '  0', '(2 more lines)']);
  });

  it('read colours from the given environment, and not from that of the process', () => {
    const before = process.env['FORCE_COLOR'];
    process.env['FORCE_COLOR'] = '1';
    try {
      const { renderer, out } = rendered({ color: 'auto' });
      renderer.answer(answer);
      assert.ok(out.text().startsWith('ROLLED BACK'), out.text());
    } finally {
      if (before === undefined) delete process.env['FORCE_COLOR'];
      else process.env['FORCE_COLOR'] = before;
    }
    const forced = screen();
    const streams = { stdout: forced.stream, stderr: forced.stream, env: { FORCE_COLOR: '1' } };
    createRenderer({ color: 'auto' }, streams, 'x.result').answer(answer);
    assert.ok(forced.text().startsWith('\u001b[31mROLLED BACK'), forced.text());
  });

  it('colour the outcome word only', () => {
    const { renderer, out } = rendered({ color: 'always' });
    renderer.answer(answer);
    assert.ok(out.text().startsWith('\u001b[31mROLLED BACK\u001b[39m generation 17\n'));
    assert.equal(out.text().split('\u001b').length, 3);
  });
});

describe('errors', () => {
  const error = new WritError('METADATA_EXPIRED', 'timestamp has expired', {
    facts: { expected: 1, actual: 2 },
  });

  it('go to stderr with code, facts and hint, and give the exit code of their kind', () => {
    const { renderer, out, err } = rendered();
    assert.equal(renderer.error(error), 1);
    assert.match(
      err.text(),
      /^error\[METADATA_EXPIRED\]: timestamp has expired \(expected 1, actual 2\)\nhint: .+\ndocs: writ help METADATA_EXPIRED\n$/,
    );
    assert.equal(out.text(), '');
  });

  it('name no page for a usage error or an interruption', () => {
    for (const code of ['USAGE', 'INTERRUPTED'] as const) {
      const { renderer, err } = rendered();
      renderer.error(new WritError(code, 'x'));
      assert.doesNotMatch(err.text(), /docs/);
    }
  });

  it('name their page with --json for every code', () => {
    const { renderer, out } = rendered({ json: true });
    renderer.error(new WritError('USAGE', 'x'));
    assert.equal(JSON.parse(out.text()).docs, 'writ help USAGE');
  });

  it('name the address of their page too when it has one', () => {
    const env = { WRIT_DOCS_URL: 'https://docs.example.com/writ' };
    const address = 'https://docs.example.com/writ/errors/METADATA_EXPIRED';
    const people = rendered({}, undefined, env);
    people.renderer.error(error);
    assert.match(people.err.text(), new RegExp(`\\ndocs: writ help METADATA_EXPIRED, or ${address}\\n$`));
    const script = rendered({ json: true }, undefined, env);
    script.renderer.answer({ ...answer, docs: 'METADATA_EXPIRED' });
    const { docs, docsUrl } = JSON.parse(script.out.text());
    assert.deepEqual([docs, docsUrl], ['writ help METADATA_EXPIRED', address]);
  });

  it('search for no page without an error', () => {
    const env = {
      get WRIT_DOCS_URL(): string {
        throw new Error('read');
      },
    };
    for (const json of [false, true]) {
      const { renderer, out } = rendered({ json }, undefined, env);
      renderer.answer(answer);
      assert.match(out.text(), /writ history/);
    }
  });

  it('are printed verbosely without control characters', () => {
    const { renderer, err } = rendered({ verbose: true });
    renderer.error(new WritError('INTERNAL', 'x', { cause: new Error('\u001b[2J\u009b') }));
    assert.match(err.text(), /Error: \\u\{1b\}\[2J\\u\{9b\}/);
    assert.doesNotMatch(err.text().replaceAll('\n', ''), /\p{Cc}/u);
  });

  it('give 130 for an interruption, and the exit code of the signal that ended the command', () => {
    const interrupted = new WritError('INTERRUPTED', 'x');
    assert.equal(rendered().renderer.error(interrupted), 130);
    assert.equal(rendered().renderer.error(interrupted, 143), 143);
  });

  it('show the effect on the running policy if the command changes it', () => {
    const stands = policyStands(error, 17);
    const people = rendered();
    people.renderer.error(stands);
    assert.match(
      people.err.text(),
      /\n {2}Generation 17 stays active; nothing was changed\.\nhint: .+\ndocs: .+\n$/,
    );
    const script = rendered({ json: true });
    script.renderer.error(stands);
    assert.equal(JSON.parse(script.out.text()).changed, false);
  });

  it('go to stdout as one object with --json', () => {
    const { renderer, out, err } = rendered({ json: true });
    renderer.error(error);
    const { type, outcome, exitCode, code, facts } = JSON.parse(out.text());
    assert.deepEqual(
      { type, outcome, exitCode, code, facts },
      {
        type: 'pull.result',
        outcome: 'failed',
        exitCode: 1,
        code: 'METADATA_EXPIRED',
        facts: { expected: 1, actual: 2 },
      },
    );
    assert.equal(err.text(), '');
  });
});

describe('narration', () => {
  const clock = fakeClock({ nowMs: Date.UTC(2026, 10, 21) });

  it('shows the time of each step, also if all ends are printed at the end', () => {
    const { renderer, err } = rendered();
    const clock = fakeClock();
    const reporter = renderer.reporter(clock);
    const step = (name: string, ms: number): void => {
      reporter.begin(name);
      clock.advance(ms);
    };
    step('roots', 1000);
    step('roles', 2000);
    step('archives', 3000);
    step('archives', 500);
    for (const name of ['roots', 'roles', 'archives', 'never begun']) reporter.finish(name, '');
    const times = err
      .text()
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t').at(-1));
    assert.deepEqual(times, ['1.0 s', '2.0 s', '3.5 s', 'ok']);
  });

  it('on a terminal prints each step once, also with --verbose', async () => {
    const { renderer, err } = rendered({ verbose: true }, { columns: 80 });
    const clock = fakeClock({ nowMs: 0 });
    const reporter = renderer.reporter(clock);
    reporter.begin('fetch', 'archive');
    await clock.advance(300);
    reporter.finish('fetch', '1.2 MB');
    assert.equal(
      err
        .text()
        .split('\n')
        .filter((line) => line.includes('fetch')).length,
      1,
    );
  });

  it('without a terminal is one line with tabs for each finished step', async () => {
    const { renderer, out, err } = rendered();
    const reporter = renderer.reporter(clock);
    reporter.begin('fetch', '1.2 MB');
    await clock.advance(300);
    reporter.finish('fetch', '1.2 MB');
    reporter.finish('check', 'zones parse', 'FAIL');
    assert.equal(
      err.text(),
      '2026-11-21T00:00:00.300Z\tfetch\tok\t1.2 MB\t0.3 s\n2026-11-21T00:00:00.300Z\tcheck\tFAIL\tzones parse\t\n',
    );
    assert.equal(out.text(), '');
  });

  it('on a terminal is one progress line that its end replaces, never wider than the terminal', () => {
    const { renderer, err } = rendered({}, { columns: 20 });
    const reporter = renderer.reporter(clock);
    reporter.begin('fetch', '日'.repeat(100));
    reporter.finish('fetch', '1.2 MB');
    const [, live = '', done = ''] = err.text().split('\r\u001b[2K');
    assert.equal(live, '  fetch     日日日');
    assert.match(done, /^ {2}fetch {5}1\.2 MB/);
    assert.ok(done.endsWith('\n') && !live.includes('\n'));
  });

  it('on a terminal removes the progress line before an answer or an error', () => {
    const error = new WritError('DISK_FULL', 'x');
    for (const end of ['answer', 'error'] as const) {
      const { renderer, err } = rendered({}, { columns: 80 });
      renderer.reporter(clock).begin('fetch', 'x');
      if (end === 'answer') renderer.answer(answer);
      else renderer.error(error);
      const [, live = '', after] = err.text().split('\r\u001b[2K');
      assert.ok(live.includes('fetch'));
      assert.match(after ?? 'not cleared', end === 'answer' ? /^$/ : /^error\[DISK_FULL\]/);
    }
  });

  it('on a terminal shows the progress of a step, at most ten times a second', async () => {
    const { renderer, err } = rendered({}, { columns: 80 });
    const reporter = renderer.reporter(clock);
    const far = (done: number) => reporter.progress('pack', { done, total: 10_000_000, unit: 'bytes' });
    reporter.begin('pack', 'source');
    far(0);
    for (const done of [1_000_000, 2_000_000, 5_000_000]) {
      await clock.advance(50);
      far(done);
    }
    await clock.advance(900);
    far(6_000_000);
    far(10_000_000);
    reporter.finish('pack', 'done');
    assert.deepEqual(
      err.text().split('\r\u001b[2K').slice(1, -1),
      [
        'source',
        '0 B of 10.0 MB, 0 %',
        '2.0 MB of 10.0 MB, 20 %',
        '6.0 MB of 10.0 MB, 60 %, 5.7 MB/s, 0:01 left',
        '10.0 MB of 10.0 MB, 100 %, 9.5 MB/s, 0:00 left',
      ].map((text) => `  pack      ${text}`),
    );
  });

  it('on a terminal measures a step again when it restarts', async () => {
    const { renderer, err } = rendered({}, { columns: 80 });
    const reporter = renderer.reporter(clock);
    const far = (done: number) => reporter.progress('read', { done, total: 100, unit: 'files' }, 'both');
    far(0);
    reporter.finish('read', 'one');
    await clock.advance(10_000);
    far(20);
    await clock.advance(1000);
    far(30);
    assert.ok(err.text().endsWith('  read      both   30 of 100 files, 30 %, 10 files/s, 0:07 left'));
  });

  it('without a terminal does not show the progress of a step, also with --verbose', () => {
    const { renderer, err } = rendered({ verbose: true });
    renderer.reporter(clock).progress('pack', { done: 1, total: 2, unit: 'bytes' });
    assert.equal(err.text(), '');
  });

  for (const options of [{ quiet: true }, { json: true }]) {
    it(`on a terminal does not show the progress of a step with ${Object.keys(options)}`, () => {
      const { renderer, out, err } = rendered(options, { columns: 80 });
      renderer.reporter(clock).progress('pack', { done: 1, total: 2, unit: 'bytes' });
      assert.equal(out.text() + err.text(), '');
    });

    it(`prints only warnings with ${Object.keys(options)}`, () => {
      const { renderer, err } = rendered(options);
      const reporter = renderer.reporter(clock);
      reporter.begin('fetch');
      reporter.finish('fetch', 'x');
      reporter.note('x');
      reporter.warn('the clock is behind');
      assert.equal(err.text(), 'warning: the clock is behind\n');
    });
  }
});
