//! The hostile cases that containers must survive too, one by one, with every run in a container.

use crate::lab::{need_docker, on_docker};

macro_rules! in_containers {
    ($($room:ident: $($case:ident),+;)+) => {
        $($(
            #[test]
            fn $case() {
                if need_docker() {
                    on_docker(super::$room::$case);
                }
            }
        )+)+
    };
}

in_containers! {
    cross_run:
        h121_files_of_a_run_are_gone_with_it,
        h122_the_same_names_at_once_are_different_files,
        h123_kernel_objects_of_a_session_are_gone_after_each_run,
        h124_a_skill_cannot_change_itself,
        h126_a_skill_sees_no_other_skill;
    environment_and_descriptors:
        h056_no_variable_of_the_host_is_visible;
    exhaustion:
        h107_a_memory_bomb_ends_as_memory,
        h109_a_spinning_run_leaves_room_for_others,
        h110_cpu_time_and_wall_time_are_told_apart,
        h111_a_full_disk_is_the_scripts_own,
        h112_inodes_run_out_inside_only,
        h113_descriptors_run_out_inside_only,
        h114_ipc_is_limited_and_gone_afterwards,
        h115_a_flood_of_output_is_cut_and_costs_no_memory,
        h116_unread_input_hangs_nobody,
        h117_odd_deadlines_are_met_or_refused,
        h118_many_runs_at_once_do_not_disturb_each_other;
    filesystem_reach:
        h001_secrets_of_the_host_are_absent,
        h002_state_and_other_skills_are_absent,
        h003_the_system_and_the_skill_cannot_be_written,
        h004_a_read_only_mount_stays_read_only,
        h007_file_handles_open_nothing,
        h008_device_nodes_cannot_be_made;
    interface_traversal:
        h017_destinations_that_leave_the_workspace_are_refused,
        h018_a_link_that_the_skill_ships_leads_no_input_out,
        h019_destinations_that_are_taken_are_refused,
        h020_strange_names_are_kept_byte_for_byte_or_refused,
        h021_words_with_a_dash_are_data,
        h022_no_shell_sees_the_arguments,
        h023_globs_stay_inside_and_stay_fast,
        h025_a_working_directory_stays_inside,
        h026_variables_reach_the_script_and_nobody_else;
    kernel_interfaces:
        h048_kernel_secrets_are_masked,
        h049_kernel_settings_cannot_be_written,
        h051_sysfs_is_absent,
        h052_devices_of_the_machine_are_absent,
        h053_the_kernel_log_is_closed,
        h055_a_crash_leaves_no_core;
    network:
        h096_no_packet_leaves,
        h097_listeners_of_the_host_are_out_of_reach,
        h098_metadata_services_are_out_of_reach,
        h099_abstract_sockets_do_not_cross,
        h100_sockets_in_the_hosts_directories_are_absent;
    output_collection:
        h029_symlink_output_is_refused,
        h030_an_output_directory_that_is_a_link_is_not_followed,
        h033_a_fifo_blocks_nobody,
        h034_special_files_are_refused_by_kind,
        h035_a_sparse_file_is_never_materialised,
        h037_masses_of_files_are_bounded,
        h040_strange_modes_do_not_travel,
        h040_the_workspaces_own_directories_are_repaired;
    privileged_calls:
        h080_no_new_namespaces,
        h081_no_namespace_can_be_joined,
        h082_nothing_can_be_mounted,
        h083_keyrings_are_out_of_reach,
        h084_calls_of_administrators_are_refused_without_killing,
        h085_foreign_calling_conventions_are_no_way_round,
        h088_the_clock_cannot_be_set,
        h089_the_host_name_cannot_be_set,
        h090_no_capability_is_held_or_gained,
        h091_control_groups_are_out_of_reach,
        h093_nothing_can_be_typed_into_the_callers_terminal,
        h094_cached_pages_of_the_host_stay_as_they_are,
        h095_rare_socket_families_do_not_exist;
    processes:
        h066_a_fork_bomb_ends_at_the_limit,
        h067_threads_count_as_processes,
        h068_a_deaf_script_is_killed_at_the_deadline,
        h069_a_daemon_dies_with_its_run,
        h070_a_grandchild_that_holds_the_output_delays_nobody,
        h071_a_stopped_script_is_killed_at_the_deadline,
        h075_setuid_programs_give_nothing,
        h076_file_capabilities_are_ignored,
        h078_the_death_of_skillbox_is_the_death_of_the_script;
    text_and_reporting:
        h131_terminal_escapes_stay_data,
        h132_forged_words_change_no_verdict,
        h133_bytes_that_are_no_text_are_marked,
        h134_ends_are_told_apart,
        h136_long_messages_are_bounded;
}
