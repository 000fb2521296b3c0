// The tables of a fleet server's store, as types for kysely: one schema for the embedded database and for PostgreSQL.
// Times are epoch milliseconds. Whole numbers have 64 bits. Owns names and types; migrations.ts creates and changes tables.
import type { ActiveState, BakeState, OfferedState } from '../../core/fleet/report.js';

export interface Tables {
  /** One row: the identity of the fleet, and the time for which it has accepted reports. */
  readonly fleet: FleetRow;
  readonly hosts: HostRow;
  readonly host_labels: { key_id: string; name: string; value: string };
  readonly host_bundles: HostBundleRow;
  readonly outcomes: OutcomeRow;
  readonly intervals: IntervalRow;
  readonly counters: CounterRow;
  readonly host_counters: HostCounterRow;
  readonly tokens: TokenRow;
  readonly sessions: { digest: string; token_id: string; expires_at_ms: number };
  readonly audit: { id: number; at_ms: number; who: string; what: string; subject: string; detail: string };
  readonly alarms: AlarmRow;
  /** The releases of each repository that hosts should use; `view` is the JSON of a RepositoryView. */
  readonly repositories: { id: string; url: string; tried_at_ms: number; view: string };
  readonly leases: { name: string; holder: string; until_ms: number };
}

export interface FleetRow {
  id: string;
  created_at_ms: number;
  /** Before this time no server accepted reports: silence of a host from then is not the host's. */
  accepting_since_ms: number;
  /** Advanced while any server accepts reports. After a gap `accepting_since_ms` begins again. */
  accepting_until_ms: number;
}

export type HostState = 'waiting' | 'accepted' | 'retired';

export interface HostRow {
  /** SHA-256 of the raw public key, hex; `opa/<token>/<id>` for an OPA. */
  key_id: string;
  public_key: string;
  kind: 'writ' | 'opa';
  state: HostState;
  host: string;
  install_id: string;
  boot_id: string;
  token_id: string;
  ephemeral: number;
  enrolled_at_ms: number;
  /** The counter of the last report; `body_digest` is the digest of its body. */
  counter: number;
  body_digest: string;
  nonce: string;
  last_seen_ms: number;
  /** The interval between reports that the server granted last. */
  every_ms: number;
  /** Clock of the host minus clock of the server, at the last report. */
  skew_ms: number;
  agent: string;
  health: string;
  version: string;
  root_version: number;
  root_digest: string;
  /** 1 from the moment at which two installation ids or boot ids alternated under its key; 0 before. */
  cloned: number;
  /** 1 while its last report has ACTIVATION_BLOCKED: the host activates nothing until a person resumes it. */
  blocked: number;
  slot: number;
  last_outcome: number;
  /** The last report, as JSON. */
  report: string;
  /** Digest of the last report without its time and outcomes: a keepalive has the same digest. */
  state_digest: string;
  /** Incremented by each change of the row: a server that decided on an older row decides again. */
  revision: number;
  /** Earlier installation ids and boot ids, as JSON; `id_returns` counts how often an earlier one came back. */
  past_ids: string;
  id_returns: number;
  /** Number of challenges that the host answered with its present ids. */
  answers: number;
}

export interface HostBundleRow {
  key_id: string;
  /** Digest of the root that the host trusts: serials repeat across repositories. */
  repository: string;
  bundle: string;
  channel: string;
  /** 0 and '' while nothing is active. */
  serial: number;
  manifest: string;
  state: ActiveState | 'none';
  since_ms: number;
  /** '' while nothing is active, and for a host of a version without bake time. */
  bake: BakeState | '';
  /** 0 while the offered release is active. */
  offered_serial: number;
  offered_state: OfferedState | '';
  offered_code: string;
  offered_at_ms: number;
  offered_line: string;
}

export interface CounterRow {
  repository: string;
  bundle: string;
  channel: string;
  manifest: string;
  serial: number;
  /** `active:confirmed`, `bake:settled` of the same hosts, or `offered:refused:CHECK_FAILED` with the offered serial and no manifest. */
  state: string;
  slot: number;
  count: number;
}

/** Numbers of hosts that are not retired, grouped for the first page. */
export interface HostCounterRow {
  state: HostState;
  agent: string;
  cloned: number;
  blocked: number;
  version: string;
  root_version: number;
  root_digest: string;
  slot: number;
  count: number;
}

export interface OutcomeRow {
  key_id: string;
  n: number;
  at_ms: number;
  received_at_ms: number;
  trigger: string;
  outcome: string;
  code: string;
  bundles: string;
}

/** An interval in which a host ran a release, or refused it. */
export interface IntervalRow {
  key_id: string;
  bundle: string;
  channel: string;
  kind: 'active' | 'refused';
  serial: number;
  /** '' where a report did not name it: for a refusal, and for a release that was active between two reports. */
  manifest: string;
  /** The best proven state while it was active, '' when unknown; `refused` or `rolled-back` for a refusal. */
  state: string;
  /** Error code of a refusal; '' otherwise. */
  code: string;
  /** By the clock of the server. */
  since_ms: number;
  /** 0 while the interval has not ended. */
  until_ms: number;
  /** Time of the last write of the row. */
  written_ms: number;
  /** Number of merged intervals: 1, or all old ones of one release and day. */
  merged: number;
}

/** One alarm of the fleet that the webhook has received. */
export interface AlarmRow {
  fingerprint: string;
  /** As JSON. */
  labels: string;
  summary: string;
  /** The filter that lists the hosts of the alarm. */
  filter: string;
  starts_at_ms: number;
  /** 0 while the alarm has not ended. */
  ends_at_ms: number;
  /** The state that the receiver acknowledged last. The row is deleted once it acknowledged the end. */
  told: '' | 'firing';
}

export interface TokenRow {
  id: string;
  /** SHA-256 of the token, hex. */
  digest: string;
  kind: 'hosts' | 'people' | 'opa';
  role: 'view' | 'detail' | 'operate' | '';
  note: string;
  /** -1 stands for unlimited. */
  uses_left: number;
  expires_at_ms: number;
  /** A glob of host ids; '' stands for all. */
  hosts: string;
  /** Labels that each host of the token gets, as JSON. */
  labels: string;
  created_at_ms: number;
  revoked_at_ms: number;
}
