// The intervals of a release or of a host as a table, the newest first, with the address of all of them.
import type { ComponentChildren, VNode } from 'preact';
import type { ReleaseInterval } from '../../core/fleet/history-answers.js';
import { hostAddress, releaseAddress } from './addresses.js';
import { stateTone } from './host-words.js';
import { Badge, Foreign, Moment, Section, Table } from './parts.js';

/** @param props.subject what differs from row to row: the hosts of a release, or the releases of a host */
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
        <Foreign text={host === '' ? key.slice(0, 12) : host} />
      </a>
    );
  return (
    <>
      <a href={releaseAddress({ bundle, channel, serial })}>
        <Foreign text={bundle} /> {serial}
      </a>{' '}
      <span class="quiet">
        <Foreign text={channel} />
      </span>
    </>
  );
}

function cellsOf({ kind, state, code, sinceMs, untilMs, merged = 1 }: ReleaseInterval): ComponentChildren[] {
  const word = state ?? (kind === 'active' ? 'active' : 'refused');
  return [
    <>
      <Badge tone={stateTone(word)} text={word} />
      {merged === 1 ? null : <span class="quiet"> {merged} times that day</span>}
    </>,
    <Moment atMs={sinceMs} />,
    untilMs === undefined ? 'now' : <Moment atMs={untilMs} />,
    code === undefined ? '' : <code>{code}</code>,
  ];
}
