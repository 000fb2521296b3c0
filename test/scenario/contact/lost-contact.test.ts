// The server becomes unreachable after a release: the host rolls it back, and holds or retries it depending on the server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { contactHost } from '../../kit/host/contact-host.js';

const second = 1000;
const minute = 60_000;

describe('a release that cuts its host off from the repository', () => {
  it('is rolled back after four attempts, and held once contact returns', async () => {
    using contact = await contactHost();
    contact.isReached = (active) => active !== '2';
    // The connection before the swap still works: policy 1 is active then.
    await contact.take(2);
    const swapMs = contact.askedAtMs[0] ?? 0;
    await contact.wait(58 * second);
    assert.equal(contact.active(), '2');
    await contact.wait(6 * second);
    assert.equal(contact.active(), '1');
    assert.deepEqual(
      contact.askedAtMs.slice(1, 5).map((atMs) => Math.round((atMs - swapMs) / second)),
      [5, 15, 30, 60],
    );
    const [problem] = contact.restores[0]?.result.problems ?? [];
    assert.deepEqual([problem?.code, problem?.facts['cause']], ['BAKE_FAILED', 'CONTACT_LOST']);
    await contact.wait(5 * second);
    const { lostContacts, holds } = contact.test.host.ledger.read();
    assert.deepEqual([lostContacts?.['access']?.state, holds[0]?.serial], ['held', 2]);
    await contact.wait(60 * minute);
    assert.equal((await contact.test.pull()).problems[0]?.code, 'RELEASE_HELD');
    assert.equal(contact.active(), '1');
    assert.equal((await contact.take(3)).outcome, 'activated', 'a newer release ends it');
    assert.equal(contact.test.host.ledger.read().lostContacts, undefined);
  });
});

describe('a server that fails after a swap', longCase, () => {
  it('makes the host activate the release again at the first contact', async () => {
    using contact = await contactHost();
    await contact.take(2);
    contact.isReached = () => false;
    await contact.wait(64 * second);
    assert.equal(contact.active(), '1');
    await contact.wait(2 * minute);
    assert.equal(contact.test.host.ledger.read().lostContacts?.['access']?.state, 'away');
    contact.isReached = () => true;
    await contact.wait(32 * second);
    assert.equal(contact.active(), '2');
    await contact.wait(12 * minute);
    assert.equal(contact.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 2);
  });

  it('makes the host activate the release again after 10, 20 and 40 minutes, the third time for good', async () => {
    using contact = await contactHost();
    await contact.take(2);
    contact.isReached = () => false;
    for (const minutes of [10, 20, 40]) {
      await contact.wait(64 * second);
      assert.equal(contact.active(), '1', `${minutes} min are to come`);
      await contact.wait((minutes - 1) * minute);
      assert.equal(contact.active(), '1');
      await contact.wait(1 * minute);
      assert.equal(contact.active(), '2');
    }
    assert.equal(contact.reactivated.length, 3);
    await contact.wait(30 * minute);
    assert.equal(contact.active(), '2');
  });
});

describe('contact that is no evidence against a release', longCase, () => {
  it('includes a server that was unreachable before the swap', async () => {
    using contact = await contactHost();
    contact.isReached = () => false;
    await contact.take(2);
    await contact.wait(12 * minute);
    assert.deepEqual([contact.active(), contact.askedAtMs.length], ['2', 1]);
    assert.equal(contact.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 2);
  });

  it('includes a server that answers again at the last attempt', async () => {
    using contact = await contactHost();
    await contact.take(2);
    contact.isReached = () => false;
    await contact.wait(50 * second);
    contact.isReached = () => true;
    await contact.wait(12 * minute);
    assert.deepEqual([contact.active(), contact.restores.length], ['2', 0]);
  });
});

describe('a restart of the agent between two steps of a lost contact', longCase, () => {
  it('loses none of the steps', async () => {
    using contact = await contactHost();
    contact.isReached = (active) => active !== '2';
    await contact.take(2);
    await contact.wait(16 * second, contact.restart());
    await contact.wait(20 * second, contact.restart());
    await contact.wait(30 * second, contact.restart());
    assert.equal(contact.active(), '1');
    await contact.wait(5 * second, contact.restart());
    assert.equal(contact.restart().ledger.read().lostContacts?.['access']?.state, 'held');
  });
});
