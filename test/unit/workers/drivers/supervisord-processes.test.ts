// The processes of supervisord in its driver: members, liveness, identity and recorded ends; and the options of the driver.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { supervisord } from '../../../../src/workers/drivers/supervisord.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import {
  type FakeAnswer,
  startFakeSupervisord,
  xmlArray,
  xmlFault,
  xmlProcess,
  xmlTrue,
} from '../../../kit/workers/fake-supervisord.js';
import { compileOptions } from '../../../kit/workers/options-schema.js';
import { driverOf, running, stopped } from '../../../kit/workers/supervisord-driver.js';

describe('the members of a supervisord group', () => {
  const list = (...processes: Parameters<typeof xmlProcess>[0][]): string =>
    xmlArray(processes.map(xmlProcess));

  async function membersOf(said: FakeAnswer, options?: object): Promise<readonly string[]> {
    using dir = tempDir();
    const fake = await startFakeSupervisord(dir.join('s'), () => said);
    try {
      return await driverOf(dir.join('s'), options).members();
    } finally {
      await fake.close();
    }
  }

  it('are all its processes, those that do not run among them', async () => {
    const said = list(
      { group: 'web', name: 'b', ...running },
      { group: 'web', name: 'a', ...stopped },
      { group: 'other', name: 'c', ...running },
    );
    assert.deepEqual(await membersOf(said), ['web:a', 'web:b']);
  });

  it('are those that the configuration names, whatever supervisord lists', async () => {
    const options = { processes: ['web:b', 'web:a'], signal: 'HUP' };
    assert.deepEqual(await driverOf('/nonexistent/s', options).members(), ['web:a', 'web:b']);
  });

  it('are none before supervisord is up', async () => {
    assert.deepEqual(await driverOf('/nonexistent/s').members(), []);
  });

  const unsayable: readonly (readonly [string, FakeAnswer])[] = [
    ['it has no such group', list({ group: 'other', name: 'c', ...running })],
    ['it answers a fault', xmlFault(6, 'SHUTDOWN_STATE')],
    ['it answers true', xmlTrue],
    [
      'it has too many in the group',
      list(...Array.from({ length: 1025 }, (_, at) => ({ group: 'web', name: `p${at}`, ...running }))),
    ],
    ['a process has no state', xmlArray(['<struct></struct>'])],
    [
      'a process beside those of the group has no state',
      xmlArray([xmlProcess({ group: 'web', name: 'a', ...running }), '<struct></struct>']),
    ],
  ];
  for (const [what, said] of unsayable) {
    it(`are an error, not none, when ${what}`, async () => {
      await rejectsCode('WORKER_UNREACHABLE', membersOf(said));
    });
  }

  it('are an error when supervisord died', async () => {
    using dir = tempDir();
    await leaveStaleSocket(dir.join('s'));
    await rejectsCode('WORKER_UNREACHABLE', driverOf(dir.join('s')).members());
  });
});

describe('the liveness of a process of supervisord', () => {
  const states: readonly (readonly [number, string])[] = [
    [20, 'alive'],
    [10, 'unknown'],
    [40, 'unknown'],
    [1000, 'unknown'],
    [0, 'dead'],
    [30, 'dead'],
    [100, 'dead'],
    [200, 'dead'],
  ];
  for (const [state, expected] of states) {
    it(`is ${expected} in state ${state}`, async () => {
      using dir = tempDir();
      const one = {
        group: 'web',
        name: 'a',
        state,
        stateName: 'S',
        pid: [10, 20, 40].includes(state) ? 100 : 0,
      };
      const fake = await startFakeSupervisord(dir.join('s'), () => xmlProcess(one));
      assert.equal(await driverOf(dir.join('s')).liveness?.('web:a'), expected);
      await fake.close();
    });
  }

  for (const [state, exitStatus, expected] of [
    [0, 1, undefined],
    [20, 0, undefined],
    [30, 1, 'no'],
    [100, 0, undefined],
    [100, 2, 'yes'],
    [200, 1, 'yes'],
  ] as const) {
    it(`has ${expected === undefined ? 'no failure on record' : 'failed'} in state ${state} after exit ${exitStatus}`, async () => {
      using dir = tempDir();
      const one = { group: 'web', name: 'a', state, stateName: 'S', pid: 0, exitStatus };
      const fake = await startFakeSupervisord(dir.join('s'), () => xmlProcess(one));
      const failure = await driverOf(dir.join('s')).failure?.('web:a');
      assert.equal(failure?.hasGivenUp, expected);
      if (failure !== undefined) assert.equal(failure.command, 'supervisorctl start web:a');
      await fake.close();
    });
  }

  it('is unknown when it runs and is no process', async () => {
    using dir = tempDir();
    const one = { group: 'web', name: 'a', state: 20, stateName: 'RUNNING', pid: 0 };
    const fake = await startFakeSupervisord(dir.join('s'), () => xmlProcess(one));
    assert.equal(await driverOf(dir.join('s')).liveness?.('web:a'), 'unknown');
    await fake.close();
  });

  it('is unknown when supervisord does not answer', async () => {
    assert.equal(await driverOf('/nonexistent/s').liveness?.('web:a'), 'unknown');
  });
});

describe('the process behind a worker of supervisord', () => {
  it('is known by pid and start, where a reset does not make a new one', async () => {
    using dir = tempDir();
    const one = { group: 'web', name: 'a', ...running };
    const fake = await startFakeSupervisord(dir.join('s'), () => xmlProcess(one));
    assert.equal(await driverOf(dir.join('s')).identity?.('web:a'), '100@1795291485');
    assert.equal(await driverOf(dir.join('s')).pid?.('web:a'), 100);
    await fake.close();
    assert.equal(await driverOf(dir.join('s')).pid?.('web:a'), undefined);
    assert.equal(await driverOf(dir.join('s')).identity?.('web:a'), undefined);
    assert.equal(driverOf(dir.join('s'), { group: 'web' }).identity, undefined);
  });
});

describe('the options of the supervisord driver', () => {
  const validate = compileOptions(supervisord);
  const good = { supervisord: '/run/supervisor.sock', group: 'web', signal: 'HUP' };

  it('take a socket with a group or with processes', () => {
    assert.ok(validate(good));
    assert.ok(validate({ supervisord: good.supervisord, processes: ['web:web_0', 'cache'] }));
  });

  for (const bad of [
    { ...good, supervisord: 'run/s' },
    { ...good, signal: 'KILL' },
    { ...good, group: 'web:*' },
    { ...good, group: '' },
    { supervisord: good.supervisord, processes: [] },
    { supervisord: good.supervisord, processes: ['web:*'] },
    { ...good, authorizationFile: 'secret' },
  ]) {
    it(`refuse ${JSON.stringify(bad)}`, () => assert.equal(validate(bad), false));
  }

  it('need exactly one of group and processes', () => {
    for (const options of [{ signal: 'HUP' }, { group: 'web', processes: ['web:a'] }]) {
      throwsCode('CONFIG_INVALID', () => driverOf('/run/s', options));
    }
  });
});

describe('the ends that supervisord has logged', () => {
  /** Reads the record twice; in between the process was replaced twice, by ends of this kind. */
  async function endsBy(how: string, options?: object) {
    using dir = tempDir();
    const seen = { pid: 100, log: '' };
    const fake = await startFakeSupervisord(dir.join('s'), (method) =>
      method === 'readLog'
        ? `<string>${seen.log}</string>`
        : xmlProcess({ group: 'web', name: 'a', ...running, pid: seen.pid }),
    );
    try {
      const driver = driverOf(dir.join('s'), options);
      const first = await driver.endsSince?.('web:a', undefined);
      const line = (at: number): string =>
        `2026-11-28 07:00:0${at},000 WARN exited: a (${how}; not expected)\n`;
      Object.assign(seen, { pid: 102, log: line(1) + line(2) });
      const { abnormal, clean, unrecorded } = (await driver.endsSince?.('web:a', first?.mark)) ?? {};
      return { abnormal, clean, unrecorded };
    } finally {
      await fake.close();
    }
  }

  it('have no recorded cause where the signal of a notification ended a process that just started', async () => {
    assert.deepEqual(await endsBy('terminated by SIGHUP'), { abnormal: 0, clean: 0, unrecorded: 2 });
    const user = { group: 'web', signal: 'USR2' };
    assert.deepEqual(await endsBy('terminated by SIGUSR2', user), { abnormal: 0, clean: 0, unrecorded: 2 });
  });

  it('are abnormal by any other signal or exit code, and where a notification restarts', async () => {
    const abnormal = { abnormal: 2, clean: 0, unrecorded: 0 };
    for (const how of ['terminated by SIGSEGV', 'terminated by SIGUSR1', 'exit status 1'])
      assert.deepEqual(await endsBy(how), abnormal, how);
    assert.deepEqual(await endsBy('terminated by SIGHUP', { group: 'web' }), abnormal);
  });
});
