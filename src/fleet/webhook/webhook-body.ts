// Formats alarms like the webhook of Alertmanager, version 4, so that receivers of Alertmanager also accept notifications of a fleet
// server. Pure; the names of members are those of Alertmanager.
import type { AlarmRow } from '../store/tables.js';
import { labelsIn } from './alarm-rules.js';

type Texts = Readonly<Record<string, string>>;

export interface WebhookBody {
  readonly version: '4';
  readonly groupKey: string;
  readonly truncatedAlerts: number;
  readonly status: 'firing' | 'resolved';
  readonly receiver: string;
  readonly groupLabels: Texts;
  readonly commonLabels: Texts;
  readonly commonAnnotations: Texts;
  readonly externalURL: string;
  readonly alerts: readonly WebhookAlert[];
}

interface WebhookAlert {
  readonly status: 'firing' | 'resolved';
  readonly labels: Texts;
  readonly annotations: Texts;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
  readonly fingerprint: string;
}

/** The zero time of Go, which means that an alert has not ended. */
const noTime = '0001-01-01T00:00:00Z';

/**
 * Creates the body of one webhook request, in the format of Alertmanager (version 4). Throws nothing.
 * @param rows at least one; @param link address of the fleet's pages, without a trailing slash
 * @returns one alert for each row, in the same order: `firing` while `ends_at_ms` is 0, with the zero time of Go as `endsAt`;
 *   else `resolved`. The body is `firing` if one alert is. `commonLabels` and `commonAnnotations` have the members that are
 *   equal in all alerts
 */
export function webhookBody(rows: readonly AlarmRow[], fleet: string, link: string): WebhookBody {
  const alerts = rows.map((row) => alertOf(row, link));
  return {
    version: '4',
    groupKey: `{}:{fleet="${fleet}"}`,
    // Alarms that exceed one request are sent in the next one.
    truncatedAlerts: 0,
    status: alerts.some(({ status }) => status === 'firing') ? 'firing' : 'resolved',
    receiver: 'writ-fleet',
    groupLabels: { fleet },
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: link,
    alerts,
  };
}

function alertOf(row: AlarmRow, link: string): WebhookAlert {
  const { fingerprint, summary, filter, starts_at_ms: startsAtMs, ends_at_ms: endsAtMs } = row;
  return {
    status: endsAtMs === 0 ? 'firing' : 'resolved',
    labels: labelsIn(row),
    annotations: filter === '' ? { summary } : { summary, filter },
    startsAt: new Date(startsAtMs).toISOString(),
    endsAt: endsAtMs === 0 ? noTime : new Date(endsAtMs).toISOString(),
    generatorURL: filter === '' ? `${link}/` : `${link}/hosts?where=${encodeURIComponent(filter)}`,
    fingerprint,
  };
}

function common(all: readonly Texts[]): Texts {
  const [first = {}, ...others] = all;
  return Object.fromEntries(
    Object.entries(first).filter(([name, value]) => others.every((one) => one[name] === value)),
  );
}
