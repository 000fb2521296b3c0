// Page of one release: how many hosts run it, how many confirmed it and when, and on which hosts it is not active and why.

import type { VNode } from 'preact';
import type { BakeCounts, ReleaseReport } from '../../core/fleet/answers.js';
import { hostsOfRelease } from '../../core/fleet/delivery-state.js';
import type { HistoryPage } from '../../core/fleet/history-answers.js';
import { type BakeState, bakeStates } from '../../core/fleet/report.js';
import { grouped } from '../../core/text/grouped.js';
import { condition, hostsAddress, type ReleaseName, releaseHistoryCsvAddress } from './addresses.js';
import { curvePath, shownStates } from './chart-rules.js';
import { History } from './history.js';
import { type Frame, renderPage } from './layout.js';
import { OfferList } from './offers.js';
import { Moment, Section, UntrustedText } from './parts.js';
import { SignedSection } from './signed.js';
import { counted, shareText } from './words.js';

const [width, height] = [1000, 200];

interface Shown {
  readonly release: ReleaseName;
  readonly report: ReleaseReport;
  readonly nowMs: number;
}

/** @returns the page at `/releases/BUNDLE/CHANNEL/SERIAL` */
export function releasePage(
  release: ReleaseName,
  report: ReleaseReport & Partial<Pick<HistoryPage, 'intervals'>>,
  frame: Frame,
): string {
  const { bundle, channel, serial } = release;
  const shown = { release, report, nowMs: frame.atMs };
  return renderPage({
    ...frame,
    title: `${bundle} ${serial}`,
    liveEveryMs: 5000,
    children: (
      <>
        <h1>
          <UntrustedText text={bundle} /> {serial} <span class="quiet">{channel}</span>
        </h1>
        <Counts {...shown} />
        <SignedSection release={release} signed={report.signed} />
        <Curve {...shown} />
        <OfferList offers={report.offers} id="offers" role={frame.visitor?.role} />
        <History
          title="Hosts that ran it, and when"
          intervals={report.intervals ?? []}
          subject="host"
          csv={releaseHistoryCsvAddress(release)}
        />
      </>
    ),
  });
}

/** Shows one block for each manifest, because different repositories can use one serial. */
function Counts({ release, report: { releases, past } }: Shown): VNode {
  const { bundle, channel, serial } = release;
  const of = [condition('bundle', bundle), condition('channel', channel), condition('serial', serial)];
  const states = shownStates(releases);
  if (releases.length === 0)
    return (
      <p class="quiet">
        No host runs it now. <Past past={past} />
      </p>
    );
  return (
    <>
      {releases.length === 1 ? null : (
        <p class="warning">
          {counted(releases.length, 'release')} of different repositories have this serial.
        </p>
      )}
      {releases.map((one) => (
        <section aria-label={`Hosts that run manifest ${one.manifest}`}>
          <p class="quiet">
            manifest <code>{one.manifest}</code>
          </p>
          <dl class="tiles">
            {states.map((state) => (
              <div class={state === 'unconfirmed' && one[state] > 0 ? 'warning' : undefined}>
                <dt>{state}</dt>
                <dd>
                  <a href={hostsAddress([...of, condition('state', state)])}>{grouped(one[state] ?? 0)}</a>{' '}
                  <span class="quiet">{shareText(one[state] ?? 0, hostsOfRelease(one))}</span>
                </dd>
              </div>
            ))}
          </dl>
          <Bakes counts={one.bakes} />
        </section>
      ))}
    </>
  );
}

function Past({ past }: { readonly past: ReleaseReport['past'] | undefined }): VNode | null {
  if (past === undefined) return null;
  const { ran, confirmed, refusals } = past;
  const refused = refusals.map(({ code, hosts }) => (
    <>
      {' '}
      {counted(hosts, 'host')} refused it: <code>{code}</code>.
    </>
  ));
  return (
    <>
      {ran === 0 ? 'No host ran it.' : `${counted(ran, 'host')} ran it, ${grouped(confirmed)} confirmed it.`}
      {refused}
    </>
  );
}

const bakeLabels: Readonly<Record<BakeState, string>> = {
  failed: 'failed, and nothing could be restored',
  baking: 'in its bake time',
  settled: 'settled',
  unobserved: 'settled, not observed',
  none: 'without a bake time',
};

/** Counts of hosts by bake state. Hosts with a version of Writ that has no bake time are not included. */
function Bakes({ counts = {} }: { readonly counts: BakeCounts | undefined }): VNode | null {
  const states = bakeStates.filter((state) => (counts[state] ?? 0) > 0);
  if (states.length === 0) return null;
  return (
    <dl class="tiles">
      {states.map((state) => (
        <div class={state === 'failed' ? 'warning' : undefined}>
          <dt>{bakeLabels[state]}</dt>
          <dd>{grouped(counts[state] ?? 0)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Curve({ report: { curve, releases, offers }, nowMs }: Shown): VNode {
  const [first] = curve;
  const last = curve.at(-1);
  const known = [...releases.map(hostsOfRelease), ...offers.map(({ hosts }) => hosts)];
  const hosts = known.reduce((sum, one) => sum + one, 0);
  if (first === undefined || last === undefined)
    return (
      <Section id="curve" title="Confirmations over time">
        <p class="quiet">No host that runs it now has confirmed it.</p>
      </Section>
    );
  const most = Math.max(hosts, last.confirmed);
  const summary = `${counted(last.confirmed, 'host')} of ${grouped(most)} confirmed`;
  return (
    <Section id="curve" title="Confirmations over time">
      <figure class="curve">
        <figcaption>
          {summary} <span class="quiet">(the upper edge is {counted(most, 'host')})</span>
        </figcaption>
        <svg role="img" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-label={summary}>
          <path d={curvePath(curve, { width, height, hosts, untilMs: nowMs })} />
        </svg>
        <p class="ends quiet">
          <Moment atMs={first.atMs} /> <Moment atMs={Math.max(nowMs, last.atMs)} />
        </p>
      </figure>
    </Section>
  );
}
