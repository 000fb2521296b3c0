// The memory for bodies of requests, from their announcement until their answer: one budget with a bound for each address and each
// credential, so that one client leaves memory for the others. Pure except for its own counts.

/** Of which account a body is: an address before its credential was accepted, then the credential. */
export type BodyAccount =
  | {
      readonly kind: 'address';
      readonly client: string;
      /** Of the bodies of this address that have this bound, at the same time; undefined: the bytes alone are bounded. */
      readonly maxBodies?: number | undefined;
    }
  /** `id` is unique among all credentials. */
  | { readonly kind: 'credential'; readonly id: string; readonly maxBytes: number };

export interface BodyReservation {
  /** Gives the bytes back; a second call does nothing. */
  release(): void;
}

export const bodyBudgetBytes = 64 * 1024 * 1024;
/** Of all addresses whose credentials were not accepted: the other half stays for hosts and people that are known. */
export const addressesShareBytes = bodyBudgetBytes / 2;
/** Of one address. */
export const addressShareBytes = bodyBudgetBytes / 8;
/** A host sends one report after the other: four of the largest. */
export const hostKeyShareBytes = 1024 * 1024;
/** Of a token: up to 1,000 OPAs share one, and a rollout of new hosts does. */
export const tokenShareBytes = bodyBudgetBytes / 8;

interface Use {
  readonly bytes: number;
  /** Those with a bound on their number. */
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
   * @returns undefined where a bound would be exceeded; then nothing was reserved
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
