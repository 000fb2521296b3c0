// The body budget: memory for request bodies from their announcement to the response. Each address and each credential has its own
// bound, so that one client leaves memory for the others. Pure except for its counts.

/** The account that a body counts for: the address of the client until its credential is accepted, then the credential. */
export type BodyAccount =
  | {
      readonly kind: 'address';
      readonly client: string;
      /** Concurrent bodies of this address with this bound; undefined: only the bytes are bounded. */
      readonly maxBodies?: number | undefined;
    }
  /** `id` is unique among all credentials. */
  | { readonly kind: 'credential'; readonly id: string; readonly maxBytes: number };

export interface BodyReservation {
  /** Returns the bytes to the budget. A second call has no effect. */
  release(): void;
}

export const bodyBudgetBytes = 64 * 1024 * 1024;
/** For all addresses without an accepted credential. The other half is reserved for known hosts and users. */
export const addressesShareBytes = bodyBudgetBytes / 2;
/** For one address. */
export const addressShareBytes = bodyBudgetBytes / 8;
/** For one host: four of the largest reports, because a host sends one report after the other. */
export const hostKeyShareBytes = 1024 * 1024;
/** For one token, because up to 1,000 OPAs or a rollout of new hosts share a token. */
export const tokenShareBytes = bodyBudgetBytes / 8;

interface Use {
  readonly bytes: number;
  /** How many of the bodies have a bound on their number. */
  readonly bodies: number;
}

const none: Use = { bytes: 0, bodies: 0 };

export class BodyBudget {
  readonly #uses = new Map<string, Use>();
  #totalBytes = 0;
  #addressesBytes = 0;

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /**
   * @param bytes above 0
   * @returns undefined if a bound would be exceeded; then nothing is reserved
   */
  reserve(account: BodyAccount, bytes: number): BodyReservation | undefined {
    const name = account.kind === 'address' ? `address ${account.client}` : `credential ${account.id}`;
    if (!this.#hasSpace(account, this.#uses.get(name) ?? none, bytes)) return undefined;
    const bodies = account.kind === 'address' && account.maxBodies !== undefined ? 1 : 0;
    this.#change(account, name, { bytes, bodies });
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#change(account, name, { bytes: -bytes, bodies: -bodies });
      },
    };
  }

  #hasSpace(account: BodyAccount, use: Use, bytes: number): boolean {
    if (this.#totalBytes + bytes > bodyBudgetBytes) return false;
    if (account.kind === 'credential') return use.bytes + bytes <= account.maxBytes;
    if (this.#addressesBytes + bytes > addressesShareBytes) return false;
    const isBelowCount = account.maxBodies === undefined || use.bodies < account.maxBodies;
    return isBelowCount && use.bytes + bytes <= addressShareBytes;
  }

  #change(account: BodyAccount, name: string, { bytes, bodies }: Use): void {
    const use = this.#uses.get(name) ?? none;
    const left = { bytes: use.bytes + bytes, bodies: use.bodies + bodies };
    if (left.bytes === 0) this.#uses.delete(name);
    else this.#uses.set(name, left);
    this.#totalBytes += bytes;
    if (account.kind === 'address') this.#addressesBytes += bytes;
  }
}
