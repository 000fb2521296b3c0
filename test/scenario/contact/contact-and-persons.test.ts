// Lost contact combined with operations of people: a pause, a withdrawal, a newer release, a release that is kept on purpose.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { keepActive } from '../../../src/agent/bake/keep-release.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { pause, resume } from '../../../src/agent/select/pause.js';
import { lostContactErrors } from '../../../src/agent/settled/contact-rules.js';
import type { Host } from '../../../src/agent/state/host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { bakeMs } from '../../kit/host/baking-host.js';
import { type ContactHost, contactHost, firstSettledMs } from '../../kit/host/contact-host.js';

const second = 1000;
const minute = 60_000;

const stateOf = ({ test }: ContactHost, bundle = 'access') =>
  test.host.ledger.read().lostContacts?.[bundle]?.state;

/** A host that rolled back from serial 2 and cannot reach its server. */
async function hostWithoutServer(): Promise<ContactHost> {
  const contact = await contactHost();
  await contact.take(2);
  contact.isReached = () => false;
  await contact.wait(130 * second);
  assert.deepEqual([contact.active(), stateOf(contact)], ['1', 'away']);
  return contact;
}

describe('a pause', () => {
  it('does not prevent the automatic rollback, and delays the later activation until its end', async () => {
    using contact = await contactHost();
    await contact.take(2);
    contact.isReached = () => false;
    pause(contact.test.host, { by: 'anna', reason: 'at work' });
    await contact.wait(64 * second);
    assert.equal(contact.active(), '1');
    await contact.wait(15 * minute);
    assert.equal(contact.active(), '1');
    resume(contact.test.host);
    await contact.wait(2 * second);
    // After `writ resume` the release is activated; without a server its retained copy is used.
    assert.deepEqual([contact.active(), contact.reactivated.length], ['2', 1]);
  });
});

describe('a release that lost contact', () => {
  it('is reported with its next state', longCase, async () => {
    using contact = await contactHost();
    contact.isReached = (active) => active !== '2';
    await contact.take(2);
    await contact.wait(70 * second);
    const [error] = lostContactErrors(contact.test.host.ledger.read(), { isObserved: true });
    const text = 'contact lost after access 2; serial 2 is held until a newer release';
    assert.deepEqual([error?.code, error?.message], ['CONTACT_LOST', text]);
    resume(contact.test.host);
    assert.deepEqual(lostContactErrors(contact.test.host.ledger.read(), { isObserved: true }), []);
  });

  it('is reported as held without an agent, with the commands that activate it again', async () => {
    using contact = await hostWithoutServer();
    const { host } = contact.test;
    const reported = (state: 'run' | 'stop') =>
      statusReport(host, { version: '0.0.0', state, problems: [], contact: { contact: {} } }).problems.find(
        ({ code }) => code === 'CONTACT_LOST',
      );
    assert.match(reported('run')?.message ?? '', /becomes active again at the first contact/);
    const alone = reported('stop');
    const text = 'contact lost after access 2; serial 2 is held: no agent runs that would activate it again';
    assert.deepEqual([alone?.message, alone?.hint.includes('`writ resume`')], [text, true]);
    contact.isReached = () => true;
    assert.equal((await contact.test.pull()).outcome, 'deferred');
    resume(host);
    assert.equal(reported('stop'), undefined);
    assert.equal((await contact.test.pull()).outcome, 'activated');
    assert.equal(contact.active(), '2');
  });

  it('is not activated again when it was withdrawn meanwhile', longCase, async () => {
    using contact = await hostWithoutServer();
    await contact.test.publish('access', { f: '1' }, { serial: 1, withdrawn: [2] });
    contact.isReached = () => true;
    await contact.wait(5 * minute);
    assert.deepEqual([contact.active(), contact.reactivated.length], ['1', 0]);
  });

  it(
    'is not activated again from its retained copy when the host knows of its withdrawal',
    longCase,
    async () => {
      using contact = await hostWithoutServer();
      await contact.test.publish('access', { f: '1' }, { serial: 1, withdrawn: [2] });
      await contact.test.pull();
      await contact.wait(30 * minute);
      assert.deepEqual([contact.active(), contact.reactivated.length], ['1', 0]);
    },
  );

  it('is replaced by a newer release as soon as it is at fault', longCase, async () => {
    using contact = await contactHost();
    contact.isReached = (active) => active !== '2';
    await contact.take(2);
    await contact.test.publish('access', { f: '3' }, { serial: 3 });
    await contact.wait(70 * second);
    assert.equal(contact.active(), '3');
  });

  it('is replaced by a newer release at the first contact', longCase, async () => {
    using contact = await hostWithoutServer();
    await contact.test.publish('access', { f: '3' }, { serial: 3 });
    contact.isReached = () => true;
    await contact.wait(minute);
    assert.equal(contact.active(), '3');
    assert.equal(contact.test.host.ledger.read().lostContacts, undefined);
  });

  it('stays active when an operator keeps it without a bake time', longCase, async () => {
    using contact = await contactHost();
    await contact.test.publish('access', { f: '2' }, { serial: 2 });
    const result = await contact.test.pull({ force: 'yes' });
    keepActive(contact.test.host, result, 'anna');
    contact.isReached = () => false;
    await contact.wait(5 * minute);
    assert.deepEqual([contact.active(), contact.restores.length], ['2', 0]);
  });

  it('is activated again by a forced pull in spite of the verdict, and fails again', longCase, async () => {
    using contact = await contactHost();
    contact.isReached = (active) => active !== '2';
    await contact.take(2);
    await contact.wait(70 * second);
    assert.equal((await contact.test.pull({ force: 'yes' })).outcome, 'activated');
    await contact.wait(70 * second);
    assert.deepEqual([contact.active(), stateOf(contact)], ['1', 'held']);
  });
});

describe('a first policy', longCase, () => {
  it('stays active when contact is lost, without a problem once contact returns', async () => {
    using contact = await contactHost({ settle: 'no' });
    contact.isReached = () => false;
    await contact.wait(70 * second);
    const failureOf = ({ ledger }: Host) => ledger.read().bakes?.['access']?.failure?.cause;
    assert.deepEqual([contact.active(), failureOf(contact.test.host)], ['1', 'CONTACT_LOST']);
    contact.isReached = () => true;
    await contact.wait(32 * second);
    assert.equal(failureOf(contact.test.host), undefined);
    await contact.wait(firstSettledMs);
    assert.equal(contact.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 1);
  });
});

describe('a set of bundles', longCase, () => {
  it('is rolled back and held together, and names the server of its member', async () => {
    const bake = { forMs: bakeMs, restarts: 2 };
    using contact = await contactHost({
      bundles: [
        { name: 'access', bake: { ...bake, contact: 'fleet' } },
        { name: 'routes', bake },
      ],
      config: { together: [['access', 'routes']] },
    });
    contact.isReached = (active) => active !== '2';
    await contact.test.publish('routes', { f: '2' }, { serial: 2 });
    await contact.take(2);
    await contact.wait(70 * second);
    assert.deepEqual([contact.active(), contact.test.read('routes/f')], ['1', '1']);
    assert.deepEqual([stateOf(contact), stateOf(contact, 'routes')], ['held', 'held']);
    assert.deepEqual(new Set(contact.askedServers), new Set(['fleet']));
  });

  it('is activated again together after the server was unreachable', async () => {
    const bake = { forMs: bakeMs, restarts: 2, contact: 'repository' } as const;
    using contact = await contactHost({
      bundles: [
        { name: 'access', bake },
        { name: 'routes', bake },
      ],
      config: { together: [['access', 'routes']] },
    });
    await contact.test.publish('routes', { f: '2' }, { serial: 2 });
    await contact.take(2);
    contact.isReached = () => false;
    await contact.wait(64 * second);
    assert.deepEqual([contact.active(), contact.test.read('routes/f')], ['1', '1']);
    await contact.wait(10 * minute);
    assert.deepEqual([contact.active(), contact.test.read('routes/f')], ['2', '2']);
  });
});

describe('a restart of the agent while the server is unreachable', longCase, () => {
  it('keeps the time of the next activation and the number of earlier ones', async () => {
    using contact = await hostWithoutServer();
    for (let rounds = 0; rounds < 3; rounds += 1) await contact.wait(3 * minute, contact.restart());
    assert.equal(contact.active(), '2');
    assert.equal(contact.restart().ledger.read().bakes?.['access']?.contact?.tries, 1);
  });
});
