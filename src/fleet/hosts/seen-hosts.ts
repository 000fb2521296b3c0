// Holds keepalives until they are written together. They change no counter, so that a crash may lose the last few seconds of them.
// A report that changes the host is never held here.
import type { Kysely } from 'kysely';
import type { HostRow, Tables } from '../store/tables.js';
import { transactOnce } from '../store/transact.js';
import type { RowWriter } from '../store/write-rows.js';
import type { SeenHost, StoredHost } from './report-plan.js';

/** Rows of one transaction, because reports wait for it. */
const maxTogether = 512;

/** Values for an insert, which never happens, because rows of hosts are never deleted. */
const noHost: Omit<HostRow, keyof SeenHost> = {
  ...{ public_key: '', kind: 'writ', state: 'retired', host: '', install_id: '', boot_id: '', token_id: '' },
  ...{ ephemeral: 0, enrolled_at_ms: 0, nonce: '', agent: '', health: '', version: '', root_version: 0 },
  ...{
    root_digest: '',
    cloned: 0,
    blocked: 0,
    slot: 0,
    last_outcome: 0,
    report: '',
    state_digest: '',
    revision: 0,
  },
  ...{ past_ids: '', id_returns: 0, answers: 0 },
};

export class SeenHosts {
  readonly #seen = new Map<string, SeenHost>();

  get size(): number {
    return this.#seen.size;
  }

  /**
   * Must be called before the rows are read. Otherwise a keepalive that is written meanwhile would be in neither of the two, and its
   * replay would be accepted as new.
   * @param keyIds of the rows that the caller reads
   * @returns a function that applies to a row the keepalives that it may not have yet
   */
  overlay(keyIds: readonly string[]): (host: StoredHost) => StoredHost {
    const noted = new Map(keyIds.map((keyId) => [keyId, this.#seen.get(keyId)]));
    return (host) => {
      const seen = noted.get(host.key_id);
      return seen !== undefined && seen.counter > host.counter ? { ...host, ...seen } : host;
    };
  }

  note(seen: SeenHost): void {
    this.#seen.set(seen.key_id, seen);
  }

  forget(keyId: string): void {
    this.#seen.delete(keyId);
  }

  /** Writes the keepalives. Those of a failed write stay for the next one. Never overwrites a row that has a higher counter. */
  async write(db: Kysely<Tables>, writer: RowWriter): Promise<void> {
    const all = [...this.#seen.values()].sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
    for (let at = 0; at < all.length; at += maxTogether) {
      const some = all.slice(at, at + maxTogether);
      const rows = some.map((seen) => ({ ...noHost, ...seen }));
      await transactOnce(db, (trx) =>
        writer.write(trx, 'hosts', rows, {
          key: ['key_id'],
          only: ['counter', 'body_digest', 'last_seen_ms', 'every_ms', 'skew_ms'],
          where: { column: 'counter', is: '<' },
        }),
      );
      for (const seen of some) if (this.#seen.get(seen.key_id) === seen) this.#seen.delete(seen.key_id);
    }
  }
}
