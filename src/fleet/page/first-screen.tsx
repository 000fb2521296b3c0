// The first page: the state of the fleet in one sentence and one colour, then its problems, the worst first. Its length does not
// depend on the number of hosts.

import type { VNode } from 'preact';
import type { FleetFinding, FleetSummary } from '../../core/fleet/answers.js';
import { grouped } from '../../core/text/grouped.js';
import { printable } from '../../core/text/printable.js';
import { condition, hostsAddress, hostsPageAddress } from './addresses.js';
import { type Frame, renderPage } from './layout.js';
import { OfferList } from './offers.js';
import { Badge, Section } from './parts.js';
import { ReleasesInUse } from './releases-in-use.js';
import { Trust } from './trust.js';
import { ageText, counted } from './words.js';

/** @returns the page at `/` */
export function firstScreen(summary: FleetSummary, frame: Frame): string {
  const { level, sentence, findings, offers, releases } = summary;
  return renderPage({
    ...frame,
    atMs: summary.atMs,
    title: `${level.toUpperCase()}, ${counted(summary.hosts.accepted, 'host')}`,
    at: '/',
    liveEveryMs: 1000,
    children: (
      <>
        <section class={`verdict ${level}`} aria-label="State of the fleet">
          <h1>
            <Badge tone={level} text={level.toUpperCase()} /> {printable(sentence)}
          </h1>
          <Findings findings={findings} />
        </section>
        {offers.length === 0 ? null : <OfferList offers={offers} id="offers" role={frame.visitor?.role} />}
        <ReleasesInUse releases={releases} />
        <Silence summary={summary} />
        <Trust summary={summary} />
      </>
    ),
  });
}

function Findings({ findings }: { readonly findings: readonly FleetFinding[] }): VNode | null {
  if (findings.length === 0) return null;
  return (
    <ul class="findings">
      {findings.map(({ level, code, text, where }) => (
        <li class={level}>
          <code>{code}</code>{' '}
          {where === undefined ? printable(text) : <a href={hostsPageAddress(where)}>{printable(text)}</a>}
        </li>
      ))}
    </ul>
  );
}

function TooEarly({ unjudged }: { readonly unjudged: number }): VNode {
  const address = hostsAddress([condition('state', 'unjudged')]);
  const hostsText = `${grouped(unjudged)} ${unjudged === 1 ? 'host is' : 'hosts are'}`;
  return (
    <p class="warning">
      Unknown whether <a href={address}>{hostsText} silent</a>: the server has not accepted reports for two of
      their intervals.
    </p>
  );
}

function Silence({ summary }: { readonly summary: FleetSummary }): VNode {
  const { hosts, countedAtMs, atMs } = summary;
  const rows = [
    ['accepted', hosts.accepted, hostsAddress([condition('state', 'accepted')])],
    ['silent', hosts.silent, hostsAddress([condition('state', 'silent')])],
    ['stopped in order', hosts.stopped, hostsAddress([condition('state', 'stopped')])],
    ['waiting for approval', hosts.waiting, hostsAddress([condition('state', 'waiting')])],
    ['critical', hosts.critical ?? 0, hostsAddress([condition('state', 'critical')])],
    ['blocked', hosts.blocked, hostsAddress([condition('state', 'blocked')])],
    ['cloned', hosts.cloned, hostsAddress([condition('state', 'cloned')])],
    ['plain OPAs, unsigned', hosts.opa, hostsAddress([condition('kind', 'opa')])],
  ] as const;
  return (
    <Section id="hosts" title="Hosts and silence">
      {hosts.unjudged > 0 ? <TooEarly unjudged={hosts.unjudged} /> : null}
      <dl class="tiles">
        {rows.map(([name, count, address]) => (
          <div
            class={
              count > 0 && ['silent', 'critical', 'blocked', 'cloned'].includes(name) ? 'warning' : undefined
            }
          >
            <dt>{name}</dt>
            <dd>
              <a href={address}>{grouped(count)}</a>
            </dd>
          </div>
        ))}
      </dl>
      <p class="quiet">Counted {ageText(atMs - countedAtMs)} ago.</p>
    </Section>
  );
}
