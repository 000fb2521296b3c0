// Complete answers of a fleet server with the members that a test needs, and the frame of a page. Without problems by default.
import type { FleetSummary, HostDetail, HostLine, ReleaseCount } from '../../../../src/core/fleet/answers.js';
import type { Frame } from '../../../../src/fleet/page/layout.js';

export const nowMs = Date.parse('2026-11-21T14:32:05Z');

export const frame: Frame = {
  assets: { style: '/assets/page-1.css', script: '/assets/live-1.js', icon: '/assets/icon-1.svg' },
  atMs: nowMs,
  address: '/',
  visitor: { who: 'token 1', role: 'detail', by: 'session' },
};

/** Text that would run as a script, end an attribute, or change the direction of the surrounding text. */
export const hostileName = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>\u202egpj.exe\u0000&amp;`;

export function release(serial: number, more: Partial<ReleaseCount> = {}): ReleaseCount {
  const of = { bundle: 'dns-edge', channel: 'stable', serial, manifest: 'm'.repeat(64) };
  return { ...of, confirmed: 0, notified: 0, unconfirmed: 0, place: 'newest', ...more };
}

export function summary(more: Partial<FleetSummary> = {}): FleetSummary {
  return {
    schema: 1,
    type: 'fleet.summary',
    fleet: 'f',
    atMs: nowMs,
    level: 'ok',
    sentence: '40 of 40 confirmed dns-edge 42.',
    findings: [],
    hosts: { accepted: 40, waiting: 0, stopped: 0, silent: 0, unjudged: 0, blocked: 0, cloned: 0, opa: 0 },
    countedAtMs: nowMs - 3000,
    silence: 'judged',
    releases: [release(42, { confirmed: 40 })],
    offers: [],
    roots: [{ version: 1, digest: 'c'.repeat(64), hosts: 40 }],
    versions: [{ version: '1.0.0', hosts: 40 }],
    keys: [{ role: 'timestamp', version: 7, expiresAtMs: nowMs + 6 * 86_400_000 }],
    ...more,
  };
}

export function hostLine(host: string, more: Partial<HostLine> = {}): HostLine {
  return {
    key: 'ab'.repeat(32),
    host,
    kind: 'writ',
    state: 'accepted',
    presence: 'heard',
    health: 'ok',
    version: '1.0.0',
    root: 1,
    lastSeenMs: nowMs - 4000,
    skewMs: 0,
    cloned: false,
    labels: {},
    bundles: [
      { bundle: 'dns-edge', channel: 'stable', active: { serial: 42, state: 'confirmed', sinceMs: nowMs } },
    ],
    ...more,
  };
}

export function hostDetail(host: string, more: Partial<HostDetail> = {}): HostDetail {
  return {
    ...hostLine(host),
    schema: 1,
    type: 'fleet.host',
    enrolledAtMs: nowMs - 86_400_000,
    everyMs: 300_000,
    outcomes: [],
    namesakes: [],
    ...more,
  };
}
