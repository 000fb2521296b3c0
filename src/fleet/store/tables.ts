// The tables of a fleet server's store, as kysely knows them: one schema for the embedded database and for PostgreSQL.
// Times are epoch milliseconds, whole numbers of 64 bits. Owns names and types; making and changing them is migrations'.
import type { ActiveState, BakeState, OfferedState } from '../../core/fleet/report.js';

export interface Tables {
  /** One row: which fleet this is, and whether it was accepting. */
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
  /** What should be in use, as JSON of a RepositoryView. */
  readonly repositories: { id: string; url: string; tried_at_ms: number; view: string };
  readonly leases: { name: string; holder: string; until_ms: number };
}

export interface FleetRow {
  id: string;
  created_at_ms: number;
  /** Silence before it is the server's own. */
  accepting_since_ms: number;
  /** Written while any server accepts: a gap moves `accepting_since_ms`. */
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
  /** Last counter, and the digest of that body. */
  counter: number;
  body_digest: string;
  nonce: string;
  last_seen_ms: number;
  /** What it was granted last. */
  every_ms: number;
  /** Its clock less the server's, at its last report. */
  skew_ms: number;
  agent: string;
  health: string;
  version: string;
  root_version: number;
  root_digest: string;
  /** 1 since two install-ids or boot-ids alternated under its key. */
  cloned: number;
  /** 1 while its last report says that it activates nothing until a person resumes. */
  blocked: number;
  slot: number;
  last_outcome: number;
  /** The last report, JSON. */
  report: string;
  /** Of the last report without its time and outcomes: a keepalive has the same. */
  state_digest: string;
  /** One more with each change of the row: who decided on an older one decides again. */
  revision: number;
  /** Ids of installation and boot that were here before, JSON, and how often an earlier one came back. */
  past_ids: string;
  id_returns: number;
  /** Challenges that it answered under the ids that it has. */
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
  /** '' while nothing is active, and of a host whose version has no bake time. */
  bake: BakeState | '';
  /** 0 while what is offered is active. */
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

/** Hosts that are not retired, by what the first screen counts them by. */
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

/** A time in which a host ran a release, or refused it. */
export interface IntervalRow {
  key_id: string;
  bundle: string;
  channel: string;
  kind: 'active' | 'refused';
  serial: number;
  /** '' where a report did not name it: of a refusal, and of a release that was active between two reports. */
  manifest: string;
  /** The best that was proven while it was active, '' where that is not known; of a refusal `refused` or `rolled-back`. */
  state: string;
  /** Of a refusal. */
  code: string;
  /** By the clock of the server. */
  since_ms: number;
  /** 0 while it goes on. */
  until_ms: number;
  /** When the server wrote it last. */
  written_ms: number;
  /** How many intervals it stands for: 1, or those of its release and day. */
  merged: number;
}

/** What is wrong with the fleet, as far as a webhook has heard of it. */
export interface AlarmRow {
  fingerprint: string;
  /** JSON. */
  labels: string;
  summary: string;
  /** Filter that lists the hosts. */
  filter: string;
  starts_at_ms: number;
  /** 0 while it goes on. */
  ends_at_ms: number;
  /** What the receiver heard last; once it heard of the end the row is gone. */
  told: '' | 'firing';
}

export interface TokenRow {
  id: string;
  /** SHA-256 of the token, hex. */
  digest: string;
  kind: 'hosts' | 'people' | 'opa';
  role: 'view' | 'detail' | 'operate' | '';
  note: string;
  /** -1: no bound. */
  uses_left: number;
  expires_at_ms: number;
  /** Glob of host ids, '' for all. */
  hosts: string;
  /** Labels that it forces, JSON. */
  labels: string;
  created_at_ms: number;
  revoked_at_ms: number;
}
