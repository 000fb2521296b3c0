// Tests of each kind of store: receivers, frequency and senders of notifications about changes of a fleet.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { Ajv } from 'ajv';
import { until } from '../../assert/until.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { tempDir } from '../../disk/temp-dir.js';
import { makeCertificate } from '../../net/certificate.js';
import { fleetBench, type NewLocation } from '../fleet-bench.js';
import { type Receiver, receiver, refusedOffer, startWebhook, summaryWith } from '../webhook-bench.js';
import { webhookSchema } from '../webhook-schema.js';

const refused = summaryWith({ offers: [refusedOffer] });
const silent = summaryWith({
  hosts: { accepted: 13, waiting: 0, stopped: 0, silent: 2, unjudged: 0, blocked: 0, cloned: 0, opa: 0 },
});
const alertsOf = ({ bodies }: Receiver): string[] =>
  bodies.flatMap(({ alerts }) => alerts.map(({ status, labels }) => `${status} ${labels['alertname']}`));

/** Registers the cases for one kind of store. */
export function webhookCases(newLocation: NewLocation): void {
  describe('a webhook', () => {
    it('is notified once of the begin and once of the end, in the form of Alertmanager', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await using received = await receiver();
      await using hook = startWebhook(bench.store, { url: received.url });
      await hook.runRounds(3);
      assert.deepEqual(alertsOf(received), []);
      hook.summary = refused;
      await hook.runRounds(5);
      hook.summary = summaryWith();
      await hook.runRounds(20);
      assert.deepEqual(alertsOf(received), ['firing WritFleetRefused', 'resolved WritFleetRefused']);
      const valid = new Ajv().compile(webhookSchema);
      for (const body of received.bodies) assert.ok(valid(body), JSON.stringify(valid.errors));
      const [first, last] = received.bodies.map(({ alerts: [alert] }) => alert);
      assert.deepEqual(first?.labels, {
        ...{ alertname: 'WritFleetRefused', severity: 'critical', fleet: 'f-1' },
        ...{ bundle: 'dns', channel: 'stable', serial: '43' },
      });
      assert.deepEqual(
        [first?.endsAt, last?.startsAt, last?.fingerprint],
        ['0001-01-01T00:00:00Z', first?.startsAt, first?.fingerprint],
      );
      assert.match(first?.generatorURL ?? '', /^https:\/\/fleet\.example\.net\/hosts\?where=state%3Drefused/);
      assert.equal(hook.log.named('the webhook was notified').length, 2);
    });

    it('is not notified again by a restarted server or by a second server', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      await using received = await receiver();
      const target = { url: received.url };
      {
        await using first = startWebhook(bench.store, target, clock);
        first.summary = refused;
        await first.runRounds(2);
      }
      await using second = startWebhook(bench.store, target, clock);
      second.summary = refused;
      await second.runRounds(2);
      await using third = startWebhook(bench.store, target, clock);
      third.summary = summaryWith({ offers: [refusedOffer, { ...refusedOffer, serial: 44 }] });
      await third.runRounds(2);
      assert.deepEqual(alertsOf(received), ['firing WritFleetRefused'], 'the second one holds the lease');
    });

    it('is notified of missed changes after answers of 500 with a growing backoff, and never of changes that ended', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await using received = await receiver();
      received.answer = (response: ServerResponse) => void response.writeHead(500).end();
      await using hook = startWebhook(bench.store, { url: received.url });
      hook.summary = refused;
      await hook.runRounds(1);
      hook.summary = silent;
      await hook.runRounds(119);
      const tries = received.requests.length;
      // Ten minutes with attempts at 0, then after 5, 10, 20, 40, 80, 160 and 300 s.
      assert.ok(tries >= 6 && tries <= 8, `${tries} requests`);
      assert.deepEqual(new Set(hook.results), new Set(['failed']));
      const [line] = hook.log.lines.filter(({ code }) => code === 'FLEET_WEBHOOK_FAILED');
      assert.deepEqual([line?.['to'], line?.['againMs']], [received.url.origin, 5000]);
      assert.doesNotMatch(JSON.stringify(hook.log.lines), /secret/);
      received.bodies.length = 0;
      received.answer = (response: ServerResponse) => void response.end();
      await hook.runRounds(61);
      assert.deepEqual(alertsOf(received), ['firing WritFleetSilent']);
    });

    it('that hangs, is gone, or answers without end costs one request at a time and 10 s each', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await using received = await receiver();
      const held: ServerResponse[] = [];
      received.answer = (response) => void held.push(response);
      await using hook = startWebhook(bench.store, { url: received.url });
      hook.summary = refused;
      await until(() => held.length === 1);
      await hook.clock.advance(9_999);
      assert.deepEqual(hook.results, []);
      await hook.clock.advance(1);
      await until(() => hook.results.length === 1);
      received.answer = (response) => void response.end('x'.repeat(100_000));
      await hook.runRounds(2);
      assert.equal(hook.results.length, 2);
      await received[Symbol.asyncDispose]();
      await hook.runRounds(10);
      assert.deepEqual(new Set(hook.results), new Set(['failed']));
      const reasons = hook.log.lines
        .filter(({ code }) => code === 'FLEET_WEBHOOK_FAILED')
        .map(({ msg }) => msg);
      for (const wanted of [/no answer in 10000 ms/, /longer than 65536 bytes/, /ECONNREFUSED/])
        assert.ok(
          reasons.some((reason) => wanted.test(String(reason))),
          `${wanted} in ${reasons}`,
        );
    });

    it('is notified over TLS with its token, and only if its certificate is signed by the authority', async () => {
      using dir = tempDir();
      const [own, other] = [await makeCertificate(dir.path, 'own'), await makeCertificate(dir.path, 'other')];
      const tls = { cert: readFileSync(own.certFile), key: readFileSync(own.keyFile) };
      const tokenFile = dir.join('token');
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await using received = await receiver(tls);
      const caFile = dir.join('ca.crt');
      writeFileSync(caFile, readFileSync(other.certFile));
      await using hook = startWebhook(bench.store, { url: received.url, tokenFile, caFile });
      hook.summary = refused;
      await hook.runRounds(2);
      assert.deepEqual([received.requests.length, new Set(hook.results)], [0, new Set(['failed'])]);
      writeFileSync(tokenFile, 'hush\n', { mode: 0o600 });
      await hook.runRounds(2);
      assert.deepEqual([received.requests.length, new Set(hook.results)], [0, new Set(['failed'])]);
      writeFileSync(caFile, readFileSync(own.certFile));
      await hook.runRounds(10);
      assert.deepEqual(alertsOf(received), ['firing WritFleetRefused']);
      assert.equal(received.requests[0]?.headers.authorization, 'Bearer hush');
      assert.doesNotMatch(JSON.stringify(hook.log.lines), /hush/);
    });

    it('continues after a failed round', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await using received = await receiver();
      await using hook = startWebhook(bench.store, { url: received.url });
      const lease = bench.store.db.updateTable('leases').where('name', '=', 'webhook');
      hook.summary = { ...refused, offers: undefined } as unknown as typeof refused;
      await hook.runRounds(2);
      assert.equal(hook.log.named('the webhook was not looked after').length >= 1, true);
      hook.summary = refused;
      await hook.runRounds(2);
      assert.deepEqual(alertsOf(received), ['firing WritFleetRefused']);
      await lease.set({ holder: 'another', until_ms: hook.clock.nowMs() + 3_600_000 }).execute();
      hook.summary = silent;
      // The first server uses its lease for half of its time, and then reads that another server holds it.
      await hook.runRounds(12);
      const before = received.requests.length;
      hook.summary = summaryWith({ offers: [{ ...refusedOffer, serial: 50 }] });
      await hook.runRounds(12);
      assert.equal(received.requests.length, before);
    });
  });
}
