// `writ doctor` for people: one aligned line for each check with the next command, and the count. Pure.
import { type DoctorFinding, diagnose } from '../../core/status/doctor.js';
import { counted } from './show-text.js';

/** @returns one line for each finding, then a line that counts failures and warnings, or `All is well` */
export function showFindings(findings: readonly DoctorFinding[]): string[] {
  const lines = findings.map(({ check, state, text, next }) => {
    const line = `  ${state.padEnd(4)}  ${check.padEnd(13)}  ${text}`;
    return next === undefined || next === '' ? line : `${line}    Next: ${next}`;
  });
  return [...lines, verdict(findings)];
}

function verdict(findings: readonly DoctorFinding[]): string {
  const { failures, warnings } = diagnose(findings);
  const parts = [
    ...(failures === 0 ? [] : [counted(failures, 'failure')]),
    ...(warnings === 0 ? [] : [counted(warnings, 'warning')]),
  ];
  return parts.length === 0 ? 'All is well' : parts.join(', ');
}
