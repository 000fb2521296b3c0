// Fills a store with hosts that have reported once, by the rules and the rows of the server itself, and without its network: a
// hundred thousand of them in seconds. Some of them have keys, and can be spoken for.
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CounterChanges, slotOf, writeCounters } from '../../src/fleet/hosts/counter-changes.js';
import { planReport, type StoredHost } from '../../src/fleet/hosts/report-plan.js';
import { labelRows, reportBundleRows } from '../../src/fleet/hosts/report-rows.js';
import { hostKeyIdOf } from '../../src/fleet/hosts/signed-request.js';
import type { FleetStore } from '../../src/fleet/store/open-store.js';
import { RowWriter } from '../../src/fleet/store/write-rows.js';
import { createToken } from '../../src/fleet/tokens/tokens.js';
import { sampleReport } from './sample-host.js';

export interface KeyedHost {
  readonly number: number;
  readonly keyId: string;
  readonly privateKey: KeyObject;
}

export interface HostsWanted {
  readonly hosts: number;
  /** So many of them, the first ones, have a key of their own. */
  readonly keyed: number;
  readonly nowMs: number;
  readonly everyMs: number;
}

const together = 1000;

export async function storeHosts({ db }: FleetStore, wanted: HostsWanted): Promise<readonly KeyedHost[]> {
  const { hosts, keyed, nowMs, everyMs } = wanted;
  const { id: tokenId } = await createToken(db, { kind: 'hosts' }, { who: 'bench', nowMs });
  const keys: KeyedHost[] = [];
  const writer = new RowWriter();
  for (let first = 0; first < hosts; first += together) {
    const some = Array.from({ length: Math.min(together, hosts - first) }, (_, at) => {
      const number = first + at;
      const raw =
        number < keyed ? newKey(number, keys) : createHash('sha256').update(`key ${number}`).digest();
      const report = sampleReport({ number, atMs: nowMs, everyMs, serial: 41 });
      return { keyId: hostKeyIdOf(raw), publicKey: raw.toString('base64'), report };
    });
    await db.transaction().execute(async (trx) => {
      const planned = some.map(({ keyId, publicKey, report }) => {
        const signed = { keyId, counter: 1, createdAtMs: nowMs, bodyDigest: '' };
        const before = newHost(keyId, publicKey, tokenId, nowMs);
        const plan = planReport(
          before,
          { signed, report, receivedAtMs: nowMs },
          { factor: 1, newNonce: () => '' },
        );
        if (plan.kind !== 'changed') throw new Error(`a first report is ${plan.kind}`);
        return { host: plan.host, report };
      });
      const bundles = planned.flatMap(({ host, report }) => reportBundleRows(host.key_id, report));
      const counters = new CounterChanges();
      for (const row of bundles) counters.add([row], slotOf(row.key_id), 1);
      for (const { host } of planned) counters.hosts.add(host, 1);
      await writer.write(
        trx,
        'hosts',
        planned.map(({ host }) => host),
        { key: ['key_id'] },
      );
      await writer.write(trx, 'host_bundles', bundles, { key: ['key_id', 'bundle', 'channel'] });
      const labels = planned.flatMap(({ host, report }) => labelRows(host.key_id, report.labels, {}));
      await writer.write(trx, 'host_labels', labels, { key: ['key_id', 'name'] });
      await writeCounters(trx, writer, counters);
    });
  }
  return keys;
}

function newKey(number: number, keys: KeyedHost[]): Buffer {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const raw = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  keys.push({ number, keyId: hostKeyIdOf(raw), privateKey });
  return raw;
}

function newHost(keyId: string, publicKey: string, tokenId: string, nowMs: number): StoredHost {
  return {
    ...{ key_id: keyId, public_key: publicKey, kind: 'writ', state: 'accepted', host: '', install_id: '' },
    ...{ boot_id: '', token_id: tokenId, ephemeral: 0, enrolled_at_ms: nowMs, counter: 0, body_digest: '' },
    ...{ nonce: '', last_seen_ms: nowMs, every_ms: 300_000, skew_ms: 0, agent: '', health: '', version: '' },
    ...{
      root_version: 0,
      root_digest: '',
      cloned: 0,
      blocked: 0,
      slot: slotOf(keyId),
      last_outcome: 0,
      state_digest: '',
    },
    ...{ revision: 0, past_ids: '', id_returns: 0, answers: 0 },
  };
}
