// What repositories signed for a release: its signed state, and how its entry differs from another one. Publishers chose every text
// in it.
import type { VNode } from 'preact';
import type { ReleaseReport } from '../../core/fleet/answers.js';
import type { HeadVerdict, SignedRelease, Standing } from '../../core/fleet/signed-releases.js';
import { type ReleaseName, releaseAddress } from './addresses.js';
import { Badge, Section, Table, type Tone, UntrustedText } from './parts.js';

export const standingTones: Readonly<Record<Standing, Tone>> = {
  current: 'ok',
  behind: 'warning',
  withdrawn: 'critical',
  unknown: 'quiet',
};

interface Shown {
  readonly release: ReleaseName;
  readonly signed: ReleaseReport['signed'];
}

/**
 * What each repository has signed for the release: its state (current, behind, ...), the newest serial and the changes.
 * @returns null if the server follows no repository; a sentence if no repository has this bundle and channel
 */
export function SignedSection({ release, signed }: Shown): VNode | null {
  if (signed === undefined) return null;
  return (
    <Section id="signed" title="What was signed">
      {signed.length === 0 ? (
        <p class="quiet">No repository that the server reads has this bundle and channel.</p>
      ) : null}
      {signed.map((one) => (
        <article>
          <p>
            <Badge tone={standingTones[one.standing]} text={one.standing} /> <UntrustedText text={one.url} />
            {one.standing === 'current' ? null : (
              <>
                {' has signed '}
                <a href={releaseAddress({ ...release, serial: one.current })}>{one.current}</a>
              </>
            )}
          </p>
          <Changes release={release} signed={one} />
        </article>
      ))}
    </Section>
  );
}

function Changes({
  release,
  signed,
}: {
  readonly release: ReleaseName;
  readonly signed: SignedRelease;
}): VNode {
  const { entry, against, changes } = signed;
  if (entry === undefined)
    return (
      <p class="quiet">The server has not seen its signed entry: it was replaced before, or never there.</p>
    );
  if (against === undefined || changes === undefined)
    return <p class="quiet">The server has not seen another entry to compare it with.</p>;
  const [older, newer] = signed.from === against ? [against, entry.serial] : [entry.serial, against];
  return (
    <>
      <p>
        {`From ${older} to ${newer}, compared with `}
        <a href={releaseAddress({ ...release, serial: against })}>{against}</a>
      </p>
      <Table
        caption={`How the signed entries of ${older} and ${newer} differ`}
        columns={['member', String(older), String(newer)]}
        rows={changes.map(({ member, before, after }) => [
          member,
          <UntrustedText text={before || '-'} />,
          <UntrustedText text={after || '-'} />,
        ])}
      />
    </>
  );
}

/** @returns the adoption of one bundle on a host: whether the host runs the signed release */
export function StandingCell({ signed }: { readonly signed: HeadVerdict | undefined }): VNode | string {
  if (signed === undefined) return '-';
  const { standing, serial } = signed;
  return (
    <>
      <Badge tone={standingTones[standing]} text={standing} />
      {standing === 'current' || serial === undefined ? null : ` ${serial} is signed`}
    </>
  );
}
