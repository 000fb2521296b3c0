// TUF metadata as types (specification 1.0.34 section 4), and the parsers that make them from bytes.
// Owns shapes only: signatures are signature-schemes' and the order of trust is trusted-set's.

export const specVersion = '1.0.34';

export type TopLevelRole = 'root' | 'timestamp' | 'snapshot' | 'targets';

export interface MetadataKey {
  readonly keytype: string;
  readonly scheme: string;
  readonly keyval: { readonly public: string };
}

export interface RoleKeys {
  readonly keyids: readonly string[];
  readonly threshold: number;
}

export interface MetadataSignature {
  readonly keyid: string;
  readonly sig: string;
}

/** The file as it lies in the repository: `signed` keeps every member that was received. */
export interface Envelope<Signed> {
  readonly signatures: readonly MetadataSignature[];
  readonly signed: Signed;
}

interface SignedBase<Type extends string> {
  readonly _type: Type;
  readonly spec_version: string;
  readonly version: number;
  /** ISO 8601 in UTC, as 2027-11-21T00:00:00Z */
  readonly expires: string;
}

export interface RootSigned extends SignedBase<'root'> {
  readonly consistent_snapshot?: boolean;
  readonly keys: Readonly<Record<string, MetadataKey>>;
  readonly roles: Readonly<Record<TopLevelRole, RoleKeys>>;
}

export interface MetaFile {
  readonly version: number;
  readonly length?: number;
  readonly hashes?: Readonly<Record<string, string>>;
}

export interface TimestampSigned extends SignedBase<'timestamp'> {
  readonly meta: { readonly 'snapshot.json': MetaFile };
  /** Ours: when the server signed it; the host's clock floor is the greatest one accepted. */
  readonly writ?: { readonly signedAt: string };
}

export interface SnapshotSigned extends SignedBase<'snapshot'> {
  readonly meta: Readonly<Record<string, MetaFile>>;
}

export interface TargetFile {
  readonly length: number;
  readonly hashes: Readonly<Record<string, string>>;
  readonly custom?: unknown;
}

export interface TargetsSigned extends SignedBase<'targets'> {
  readonly targets: Readonly<Record<string, TargetFile>>;
  readonly delegations?: unknown;
}
