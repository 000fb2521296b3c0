// Table of the release intervals of a release or a host, the newest first, with a link to all of them as CSV.
import type { ComponentChildren, VNode } from 'preact';
import type { ReleaseInterval } from '../../core/fleet/history-answers.js';
import { hostAddress, releaseAddress } from './addresses.js';
import { stateTone } from './host-status.js';
import { Badge, Moment, Section, Table, UntrustedText } from './parts.js';

/**
 * Shows release intervals as a table, in the given order, with a link to their CSV. Throws nothing.
 * @param props.subject what the first column names and links: the hosts of a release, or the releases of a host
 * @param props.csv the address of the CSV
 * @returns a section with the title; without intervals it has the text "Nothing is known." in place of the table and the link
 */
export function History(props: {
  readonly title: string;
  readonly intervals: readonly ReleaseInterval[];
  readonly subject: 'host' | 'release';
  readonly csv: string;
}): VNode {
  const { title, intervals, subject, csv } = props;
  return (
    <Section id="intervals" title={title}>
      {intervals.length === 0 ? (
        <p class="quiet">Nothing is known.</p>
      ) : (
        <>
          <Table
            caption={`${title}, the newest first`}
            columns={[subject, 'what', 'from', 'until', 'code']}
            rows={intervals.map((one) => [subjectOf(one, subject), ...cellsOf(one)])}
          />
          <p class="quiet">
            <a href={csv}>All of it as CSV</a>
          </p>
        </>
      )}
    </Section>
  );
}

function subjectOf(interval: ReleaseInterval, subject: 'host' | 'release'): VNode {
  const { key, host, bundle, channel, serial } = interval;
  if (subject === 'host')
    return (
      <a href={hostAddress(key)}>
        <UntrustedText text={host === '' ? key.slice(0, 12) : host} />
      </a>
    );
  return (
    <>
      <a href={releaseAddress({ bundle, channel, serial })}>
        <UntrustedText text={bundle} /> {serial}
      </a>{' '}
      <span class="quiet">
        <UntrustedText text={channel} />
      </span>
    </>
  );
}

function cellsOf({ kind, state, code, sinceMs, untilMs, merged = 1 }: ReleaseInterval): ComponentChildren[] {
  const label = state ?? (kind === 'active' ? 'active' : 'refused');
  return [
    <>
      <Badge tone={stateTone(label)} text={label} />
      {merged === 1 ? null : <span class="quiet"> {merged} times that day</span>}
    </>,
    <Moment atMs={sinceMs} />,
    untilMs === undefined ? 'now' : <Moment atMs={untilMs} />,
    code === undefined ? '' : <code>{code}</code>,
  ];
}
