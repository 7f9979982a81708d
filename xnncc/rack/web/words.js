// Numbers and times as a person reads them.
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** "1,234.5"; "–" for what is no number. */
export function number(value, digits = 0) {
  return isNumber(value) ? value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : "–";
}

/** "14:03:22" of seconds since 1970. */
export function clock(at) {
  return isNumber(at) ? new Date(at * 1000).toLocaleTimeString("en-GB") : "";
}

/** "40 s", "12 min", "3 h 20 min", "2 days". */
export function seconds(value) {
  if (!isNumber(value)) return "";
  const whole = Math.max(0, Math.round(value));
  if (whole < 120) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes >= 2880) return `${Math.round(minutes / 1440)} days`;
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "12 min left". */
export function left(value) {
  return isNumber(value) ? `${seconds(value)} left` : "";
}

/** "12 min ago" of seconds since 1970. */
export function ago(at) {
  return isNumber(at) ? `${seconds(Date.now() / 1000 - at).replace(/ h .*/, " h")} ago` : "";
}
