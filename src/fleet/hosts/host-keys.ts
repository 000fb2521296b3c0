// Caches public keys of hosts by their ids. An id is the digest of its key, so that a cached key never becomes wrong. The host's row
// decides at each request whether the host may report.
import type { Kysely } from 'kysely';
import type { Tables } from '../store/tables.js';

/** Takes a few megabytes. Beyond it, the oldest key is read from the store again. */
const maxKeys = 50_000;

export class HostKeys {
  readonly #db: Kysely<Tables>;
  readonly #known = new Map<string, Uint8Array>();

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  /** @returns the raw key; undefined if no host enrolled it */
  async keyOf(keyId: string): Promise<Uint8Array | undefined> {
    const known = this.#known.get(keyId);
    if (known !== undefined) return known;
    if (!/^[0-9a-f]{64}$/.test(keyId)) return undefined;
    const row = await this.#db
      .selectFrom('hosts')
      .select('public_key')
      .where('key_id', '=', keyId)
      .where('kind', '=', 'writ')
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const key = Buffer.from(row.public_key, 'base64');
    this.#known.set(keyId, key);
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxKeys && oldest !== undefined) this.#known.delete(oldest);
    return key;
  }
}
