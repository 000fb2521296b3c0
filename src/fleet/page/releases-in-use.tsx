// Releases in use: a bar for each bundle and channel, and a table with the same counts for every release.

import type { VNode } from 'preact';
import type { ReleaseCount } from '../../core/fleet/answers.js';
import { type DeliveryState, hostsOfRelease } from '../../core/fleet/delivery-state.js';
import { grouped } from '../../core/text/grouped.js';
import { condition, hostsAddress, releaseAddress } from './addresses.js';
import { type Bar, barsOf, barWidth, shownStates } from './chart-rules.js';
import { Badge, Section, Table, UntrustedText } from './parts.js';
import { standingTones } from './signed.js';
import { counted, shareText } from './words.js';

/** Rows that are visible at first. A click shows the others. */
const maxRows = 5;

/** Renders the section of active releases by bundle and channel; a sentence when no host reported one. */
export function ReleasesInUse({ releases }: { readonly releases: readonly ReleaseCount[] }): VNode {
  const bars = barsOf(releases);
  return (
    <Section id="releases" title="Releases in use">
      {bars.length === 0 ? <p class="quiet">No host has reported an active release.</p> : null}
      {bars.length === 0 ? null : <Legend />}
      {bars.map((bar) => (
        <BarOfReleases bar={bar} />
      ))}
    </Section>
  );
}

function Legend(): VNode {
  return (
    <ul class="legend">
      <li class="confirmed">newest, confirmed by its workers</li>
      <li class="notified">newest, notified: nothing there can confirm</li>
      <li class="unconfirmed">newest, not confirmed</li>
      <li class="silent">newest, as of a last report: silent, stopped or cloned now</li>
      <li class="tail">older releases</li>
    </ul>
  );
}

function BarOfReleases({ bar }: { readonly bar: Bar }): VNode {
  const { bundle, channel, hosts, releases, segments } = bar;
  const labels = segments.map(({ label, hosts: count }) => `${label}: ${counted(count, 'host')}`);
  const states = shownStates(releases);
  const columns = ['serial', ...['hosts', 'share', ...states].map((right) => ({ right }))];
  const rows = releases.map((release) => rowOf(release, hosts, states));
  const caption = `Releases of ${bundle} ${channel}`;
  return (
    <article class="bar">
      <h3>
        <UntrustedText text={bundle} /> <span class="quiet">{channel}</span>{' '}
        <span class="quiet">{counted(hosts, 'host')}</span>
      </h3>
      <svg
        role="img"
        viewBox={`0 0 ${barWidth} 20`}
        preserveAspectRatio="none"
        aria-label={labels.join(', ')}
      >
        {segments.map(({ tone, x, width }, index) => (
          <rect class={tone} x={x} y={0} width={width} height={20}>
            <title>{labels[index]}</title>
          </rect>
        ))}
      </svg>
      <Table caption={caption} columns={columns} rows={rows.slice(0, maxRows)} />
      {rows.length <= maxRows ? null : (
        <details id={`older-${bundle}-${channel}`}>
          <summary>{counted(rows.length - maxRows, 'older release')}</summary>
          <Table caption={`${caption}, older`} columns={columns} rows={rows.slice(maxRows)} />
        </details>
      )}
    </article>
  );
}

function rowOf(release: ReleaseCount, all: number, states: readonly DeliveryState[]): (VNode | string)[] {
  const { bundle, channel, serial, manifest, standing } = release;
  const of = [condition('bundle', bundle), condition('channel', channel), condition('serial', serial)];
  const hosts = hostsOfRelease(release);
  const count = (state: DeliveryState): VNode | string => {
    const there = release[state] ?? 0;
    if (there === 0) return '0';
    return <a href={hostsAddress([...of, condition('state', state)])}>{grouped(there)}</a>;
  };
  return [
    <>
      <a href={releaseAddress(release)} title={`manifest ${manifest}`}>
        {serial}
      </a>
      {standing === undefined ? null : (
        <>
          {' '}
          <Badge tone={standingTones[standing]} text={standing} />
        </>
      )}
    </>,
    <a href={hostsAddress(of)}>{grouped(hosts)}</a>,
    shareText(hosts, all),
    ...states.map(count),
  ];
}
