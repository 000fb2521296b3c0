// "Not now" of each driver: the answers of a busy worker, by default and by the rules of the configuration.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer, Driver } from '../../../../src/workers/contract/driver.js';
import { command } from '../../../../src/workers/drivers/command.js';
import { http } from '../../../../src/workers/drivers/http.js';
import { kresd } from '../../../../src/workers/drivers/kresd.js';
import { line } from '../../../../src/workers/drivers/line.js';
import { systemd } from '../../../../src/workers/drivers/systemd.js';
import { deferralRule } from '../../../../src/workers/shared/not-now.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { stubSystemctl } from '../../../kit/programs/stub-systemctl.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { startFakeHttpWorker } from '../../../kit/workers/fake-http-worker.js';
import { startFakeKresd } from '../../../kit/workers/fake-kresd.js';
import { startFakeLineServer } from '../../../kit/workers/fake-line-server.js';
import { startFakeSupervisord, xmlFault } from '../../../kit/workers/fake-supervisord.js';
import { eight, membersAre, setUp } from '../../../kit/workers/native-group.js';
import { joinAs } from '../../../kit/workers/raw-worker.js';
import { driverOf } from '../../../kit/workers/supervisord-driver.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

async function firstAnswer(driver: Driver): Promise<Answer> {
  const [worker = ''] = await driver.members();
  return driver.reset(worker, reset);
}

/** `not now` is a separate kind here, so that a table can name it. */
function kindOf({ kind, notNow }: Answer): string {
  return notNow === 'yes' ? 'not now' : kind;
}

describe('"not now" of a program', () => {
  const busy = 'echo error: reload already in progress >&2;';
  const loader =
    'echo "ERROR: ld.so: object \'/x.so\' from /etc/ld.so.preload cannot be preloaded: ignored." >&2;';
  const cases: readonly (readonly [string, string, object, string])[] = [
    ['exit 75, whatever is configured', 'exit 75', { notNow: { exit: [9] } }, 'not now'],
    ['a code that its user names', 'exit 9', { notNow: { exit: [9] } }, 'not now'],
    [
      'a code that refuses, with the words',
      `${busy} exit 1`,
      { notNow: { match: 'in progress' } },
      'not now',
    ],
    [
      'the words with another code',
      `${busy} exit 2`,
      { notNow: { exit: [1], match: 'in progress' } },
      'refused',
    ],
    [
      'the code without the words',
      'echo bad zone; exit 1',
      { notNow: { exit: [1], match: 'busy' } },
      'refused',
    ],
    ['the words in a later line', 'echo bad; echo busy; exit 1', { notNow: { match: 'busy' } }, 'refused'],
    ['the words with a yes', 'echo busy', { notNow: { match: 'busy' } }, 'notified'],
    [
      'the words with a code without a verdict',
      'echo busy; exit 40',
      { notNow: { match: 'busy' } },
      'not now',
    ],
    ['a code without a verdict', 'echo done; exit 40', { notNow: { match: 'busy' } }, 'unreachable'],
    ['a code without a verdict that its user names', 'exit 40', { notNow: { exit: [40] } }, 'not now'],
    ['a code above those that refuse', 'exit 99', { notNow: { exit: [99] } }, 'not now'],
    [
      'what says "nobody there" too',
      `${busy} exit 1`,
      { notNow: { match: 'in progress' }, unreachable: { match: 'progress' } },
      'unreachable',
    ],
    ['nothing', `${busy} exit 1`, {}, 'refused'],
    [
      'a line of the dynamic loader before',
      `${loader} ${busy} exit 1`,
      { notNow: { match: '^error' } },
      'not now',
    ],
    [
      'a line of the dynamic loader before "nobody there"',
      `${loader} echo connect failed >&2; exit 1`,
      { unreachable: { match: '^connect failed' } },
      'unreachable',
    ],
  ];
  for (const [what, script, keys, expected] of cases) {
    it(`is ${expected === 'not now' ? '' : 'not '}${what}`, async () => {
      const driver = command.create({ run: ['sh', '-c', script], ...keys }, driverContext());
      assert.equal(kindOf(await firstAnswer(driver)), expected);
    });
  }

  it('ignores the lines of the dynamic loader', async () => {
    const script = `${loader} ${busy} exit 1`;
    const driver = command.create(
      { run: ['sh', '-c', script], notNow: { match: '^error' } },
      driverContext(),
    );
    assert.deepEqual((await firstAnswer(driver)).notNow, 'yes');
  });
});

describe('"not now" over HTTP', () => {
  const cases: readonly (readonly [string, object, object, string])[] = [
    ...[409, 423, 425, 429, 503].map((status) => [`${status}`, { status }, {}, 'not now'] as const),
    ['500 with Retry-After', { status: 500, headers: { 'retry-after': '5' } }, {}, 'not now'],
    [
      '500 with words',
      { status: 500, body: 'reload in progress' },
      { notNow: { match: 'in progress' } },
      'not now',
    ],
    ['500 without the words', { status: 500, body: 'bad' }, { notNow: { match: 'in progress' } }, 'refused'],
    ['500 that its user names', { status: 500 }, { notNow: { status: [500] } }, 'not now'],
    ['409 where its user names others', { status: 409 }, { notNow: { status: [500] } }, 'refused'],
    ['503 where its user names others', { status: 503 }, { notNow: { status: [500] } }, 'unreachable'],
    ['409 that means yes', { status: 409 }, { status: 409 }, 'notified'],
    [
      '409 that means yes, with Retry-After',
      { status: 409, headers: { 'retry-after': '5' } },
      { status: 409 },
      'notified',
    ],
    [
      'a yes that its user names too',
      { status: 200, body: 'busy' },
      { notNow: { status: [200], match: 'busy' } },
      'notified',
    ],
    [
      '200 with another answer than the expected one',
      { status: 200, body: 'busy' },
      { expect: 'ok', notNow: { match: '^busy' } },
      'not now',
    ],
    ['404', { status: 404 }, {}, 'unreachable'],
  ];
  for (const [what, reply, keys, expected] of cases) {
    it(`${expected === 'not now' ? 'is' : 'is not'} ${what}`, async () => {
      const worker = await startFakeHttpWorker(() => reply);
      try {
        const driver = http.create({ http: worker.url, ...keys }, driverContext());
        assert.equal(kindOf(await firstAnswer(driver)), expected);
      } finally {
        await worker.close();
      }
    });
  }
});

describe('"not now" of daemons with a text', () => {
  const notNow = { match: '^NOK busy' };

  it('line: an answer with a matching first line, and no confirmation', async () => {
    using dir = tempDir();
    let answer = 'NOK busy: 3 zones left\nbad zone';
    const daemon = await startFakeLineServer(dir.join('s'), { habit: 'unbound', answer: () => answer });
    try {
      const driver = line.create(
        { line: dir.join('s'), send: 'load', expect: 'ok', notNow },
        driverContext(),
      );
      assert.equal(kindOf(await firstAnswer(driver)), 'not now');
      answer = 'bad zone\nNOK busy';
      assert.equal(kindOf(await firstAnswer(driver)), 'refused');
      const lenient = line.create(
        { line: dir.join('s'), send: 'load', expectMatch: 'busy', notNow },
        driverContext(),
      );
      answer = 'NOK busy';
      assert.equal(kindOf(await firstAnswer(lenient)), 'notified');
    } finally {
      await daemon.close();
    }
  });

  it('line: the answer of BIRD while it reconfigures, after the lines that begin each of its answers', async () => {
    using dir = tempDir();
    const answer =
      '0002-Reading configuration from /etc/bird/bird.conf\n0005 Reconfiguration already in progress';
    const daemon = await startFakeLineServer(dir.join('s'), { habit: 'bird', answer: () => answer });
    try {
      const options = {
        ...{ line: dir.join('s'), send: 'configure', until: '^[0-9]{4} ', expectMatch: '^0003 ' },
        ...{ greeting: '^000[12][ -]', notNow: { match: '^000[456] ' } },
      };
      assert.equal(kindOf(await firstAnswer(line.create(options, driverContext()))), 'not now');
    } finally {
      await daemon.close();
    }
  });

  it('kresd: another answer than the expected one', async () => {
    using dir = tempDir();
    const worker = await startFakeKresd(dir.join('1'), { answer: () => 'NOK busy' });
    try {
      const options = { kresd: dir.join('*'), command: 'f()', expect: '0', notNow };
      assert.equal(kindOf(await firstAnswer(kresd.create(options, driverContext()))), 'not now');
    } finally {
      await worker.close();
    }
  });

  it('native: no acknowledgement, whatever its text is', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir, {}, { notNow: { match: '.' } });
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: eight, timeoutMs: 60_000 });
    await worker.line();
    worker.send('{"type":"ack","id":1,"generation":8}\n');
    assert.equal(kindOf(await asked), 'confirmed');
    worker.end();
  });

  it('native: a nack with a matching reason, in time and late', async () => {
    using dir = tempDir();
    await using setup = await setUp(dir, {}, { notNow });
    const worker = await joinAs(setup.path, 'a');
    await membersAre(setup.driver, ['a']);
    const asked = setup.driver.reset('a', { target: eight, timeoutMs: 60_000 });
    await worker.line();
    worker.send('{"type":"nack","id":1,"generation":8,"reason":"NOK busy: loading"}\n');
    assert.equal(kindOf(await asked), 'not now');
    worker.end();
  });

  it('supervisord: a fault with a matching text', async () => {
    using dir = tempDir();
    const fake = await startFakeSupervisord(dir.join('s'), () => xmlFault(6, 'SHUTDOWN_STATE'), {});
    try {
      const keys = { processes: ['web:a'], signal: 'HUP', notNow: { match: 'SHUTDOWN_STATE' } };
      assert.equal(kindOf(await firstAnswer(driverOf(dir.join('s'), keys, driverContext()))), 'not now');
    } finally {
      await fake.close();
    }
  });

  it('systemd: a failed job with a matching first line', async () => {
    using dir = tempDir();
    const stub = stubSystemctl(dir.path);
    stub.unit('a.service');
    stub.job('echo "Job for a.service failed: another reload is queued" >&2; exit 1');
    const options = { systemd: 'a.service', notNow: { match: 'is queued' } };
    const driver = systemd.create(options, driverContext({ programPath: stub.programPath }));
    assert.equal(kindOf(await driver.reset('a.service', reset)), 'not now');
  });
});

describe('the rule of "not now"', () => {
  it('wants a regular expression', () => {
    throwsCode('CONFIG_INVALID', () => deferralRule({ match: '(' }));
  });

  it('wants both where a status and a text are given', () => {
    const rule = deferralRule({ status: [500], match: 'busy' });
    const isMet = (status: number, body: string): boolean =>
      rule.forStatus({ status, hasRetryAfter: false, body });
    assert.deepEqual([isMet(500, 'busy'), isMet(500, 'broken'), isMet(503, 'busy')], [true, false, false]);
  });

  it('is never met by a text where no `match` is given', () => {
    assert.equal(deferralRule({}).forText('busy'), false);
    assert.equal(deferralRule({ exit: [1] }).forText('busy'), false);
  });
});
