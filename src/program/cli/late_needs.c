/* SPDX-License-Identifier: MIT */
/* Nothing but what it is linked with counts (meson.build, debian/rules). */
int main(void)
{
    return 0;
}
